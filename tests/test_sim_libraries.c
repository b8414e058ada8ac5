/* The simulated cuBLAS, against sums written out; the simulated NCCL between processes, values and
 * virtual times. */
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cublas_v2.h"
#include "nccl.h"
#include "runtime/half.h"
#include "runtime/sim/sim_kernel.h"
#include "runtime/wait_limit.h"
#include "tests/suite.h"

static const double ms = 1e-3;

static cudaStream_t stream_new(int device)
{
    cudaStream_t stream;
    ck_assert_int_eq(cudaSetDevice(device), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

/* Memory of a device with a copy of what is at `host`. */
static void *sent(const void *host, size_t bytes, cudaStream_t stream)
{
    void *memory;
    ck_assert_int_eq(cudaMallocAsync(&memory, bytes, stream), cudaSuccess);
    ck_assert_int_eq(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, stream),
                     cudaSuccess);
    return memory;
}

static void fetch(void *host, const void *memory, size_t bytes, cudaStream_t stream)
{
    ck_assert_int_eq(cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, stream),
                     cudaSuccess);
}

/* ---- cuBLAS ---- */

enum { MATRIX = 400 };

static const struct {
    cublasOperation_t transa, transb;
    int m, n, k, lda, ldb, ldc;
    double alpha, beta;
} products[] = {
    {CUBLAS_OP_N, CUBLAS_OP_N, 3, 4, 5, 3, 5, 3, 1, 0},
    {CUBLAS_OP_T, CUBLAS_OP_N, 3, 4, 5, 5, 5, 3, 1, 0},
    {CUBLAS_OP_N, CUBLAS_OP_T, 3, 4, 5, 3, 4, 3, 1, 1},
    {CUBLAS_OP_T, CUBLAS_OP_T, 3, 4, 5, 5, 4, 3, 0.5, -2},
    {CUBLAS_OP_N, CUBLAS_OP_C, 7, 2, 9, 11, 8, 10, -1, 0.25},
    {CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, 1, 1, 1, 2, 0},
    {CUBLAS_OP_N, CUBLAS_OP_N, 2, 3, 0, 2, 1, 2, 1, 0},
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

/* Distinct, and exact in either type. */
static double element(int matrix, int i)
{
    return (i * 7 + matrix * 3) % 17 - 8;
}

static double expected_product(int p, int row, int column, double c)
{
    double sum = 0;
    for (int l = 0; l < products[p].k; l++) {
        bool ta = products[p].transa != CUBLAS_OP_N, tb = products[p].transb != CUBLAS_OP_N;
        sum += element(0, ta ? l + row * products[p].lda : row + l * products[p].lda) *
               element(1, tb ? column + l * products[p].ldb : l + column * products[p].ldb);
    }
    return products[p].alpha * sum + (products[p].beta == 0 ? 0 : products[p].beta * c);
}

static cublasHandle_t cublas_new(cudaStream_t stream)
{
    cublasHandle_t handle;
    ck_assert_int_eq(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    ck_assert_int_eq(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
    ck_assert_int_eq(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH), CUBLAS_STATUS_SUCCESS);
    return handle;
}

/* Where beta is 0 the result's old values, which are not numbers, must not count. */
#define PRODUCT_TEST(name, type, gemm)                                                             \
    START_TEST(name)                                                                               \
    {                                                                                              \
        type host[3][MATRIX], alpha = (type)products[_i].alpha, beta = (type)products[_i].beta;    \
        cudaStream_t stream = stream_new(1);                                                       \
        cublasHandle_t handle = cublas_new(stream);                                                \
        for (int i = 0; i < 3 * MATRIX; i++)                                                       \
            host[i / MATRIX][i % MATRIX] = (type)element(i / MATRIX, i % MATRIX);                  \
        for (int i = 0; i < MATRIX && beta == 0; i++)                                              \
            host[2][i] = (type)NAN;                                                                \
        type *a = sent(host[0], sizeof host[0], stream),                                           \
             *b = sent(host[1], sizeof host[1], stream);                                           \
        type *c = sent(host[2], sizeof host[2], stream);                                           \
        ck_assert_int_eq(gemm(handle, products[_i].transa, products[_i].transb, products[_i].m,    \
                              products[_i].n, products[_i].k, &alpha, a, products[_i].lda, b,      \
                              products[_i].ldb, &beta, c, products[_i].ldc),                       \
                         CUBLAS_STATUS_SUCCESS);                                                   \
        type result[MATRIX];                                                                       \
        fetch(result, c, sizeof result, stream);                                                   \
        for (int i = 0; i < MATRIX; i++) {                                                         \
            int row = i % products[_i].ldc, column = i / products[_i].ldc;                         \
            double was = (double)host[2][i], is = (double)result[i];                               \
            if (row < products[_i].m && column < products[_i].n)                                   \
                ck_assert_double_eq(is, expected_product(_i, row, column, was));                   \
            else                                                                                   \
                ck_assert(memcmp(&result[i], &host[2][i], sizeof result[i]) == 0);                 \
        }                                                                                          \
        cublasDestroy(handle);                                                                     \
    }                                                                                              \
    END_TEST
PRODUCT_TEST(products_single, float, cublasSgemm)
PRODUCT_TEST(products_double, double, cublasDgemm)

enum misuse { OTHER_DEVICE, HOST_MEMORY, TOO_SHORT, SMALL_LEADING, OTHER_CURRENT };

START_TEST(products_check_their_matrices)
{
    static float host[64];
    float one = 1;
    cudaStream_t other = stream_new(1), stream = stream_new(0);
    cublasHandle_t handle = cublas_new(stream);
    float *a = sent(host, sizeof host, stream), *theirs = sent(host, sizeof host, other);
    float *wrong = _i == OTHER_DEVICE ? theirs : _i == HOST_MEMORY ? host : a;
    if (_i == OTHER_CURRENT)
        cudaSetDevice(1);
    int m = _i == TOO_SHORT ? 9 : 8, ld = _i == SMALL_LEADING ? 7 : m;
    cublasStatus_t status =
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 8, 8, &one, wrong, ld, a, 8, &one, a, ld);
    bool breaks = _i == OTHER_DEVICE || _i == HOST_MEMORY || _i == TOO_SHORT;
    ck_assert_str_eq(cudaGetErrorName(cudaStreamSynchronize(stream)),
                     breaks ? "cudaErrorIllegalAddress" : "cudaSuccess");
    if (_i == SMALL_LEADING)
        ck_assert_str_eq(cublasGetStatusName(status), "CUBLAS_STATUS_INVALID_VALUE");
    if (_i == OTHER_CURRENT)
        ck_assert_str_eq(cublasGetStatusName(status), "CUBLAS_STATUS_EXECUTION_FAILED");
    if (breaks)
        ck_assert_ptr_nonnull(
            strstr(cudaGetErrorString(cudaErrorIllegalAddress), "cuBLAS on cuda:0"));
    cublasDestroy(handle);
}
END_TEST

/* 80 multiprocessors compute a tile of 128 x 128 each: one tile more takes another wave. */
static const struct {
    int m, n, waves;
} waves[] = {
    {128, 80 * 128, 1}, {1, 1, 1}, {128, 80 * 128 + 1, 2}, {1024, 2048, 2}, {2048, 2048, 4}};

START_TEST(products_take_whole_waves)
{
    static float host[2048];
    enum { SCALE = 128, K = 16 };
    float one = 1, zero = 0;
    cudaStream_t stream = stream_new(0);
    cublasHandle_t handle = cublas_new(stream);
    float *a = sent(host, sizeof host, stream);
    void *c;
    ck_assert_int_eq(cudaMallocAsync(&c, sizeof host, stream), cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    sim_set_scale(SCALE);
    int m = (waves[_i].m + SCALE - 1) / SCALE, n = (waves[_i].n + SCALE - 1) / SCALE;
    double begin = sim_clock();
    ck_assert_int_eq(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, K, &one, a, m, a, K, &zero, c, m),
        CUBLAS_STATUS_SUCCESS);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    double at_peak = waves[_i].waves * 80 * 2.0 * 128 * 128 * SCALE * K / 15.7e12;
    ck_assert_double_gt(sim_clock() - begin, at_peak);
    ck_assert_double_lt(sim_clock() - begin, 1.15 * at_peak + 0.01 * ms);
    cublasDestroy(handle);
}
END_TEST

/* ---- NCCL ---- */

enum { RANKS = 2, COUNT = 3, LARGE = 1 << 20 };

/* What a rank does, in a process of its own, and when its stream is done with it. */
typedef void part(int rank, ncclComm_t comm, cudaStream_t stream);

static void rank_main(int rank, ncclUniqueId id, part *part, double *end)
{
    ncclComm_t comm;
    cudaStream_t stream = stream_new(rank);
    ck_assert_msg(ncclCommInitRankConfig(&comm, RANKS, id, rank, NULL) == ncclSuccess,
                  "rank %d: %s", rank, ncclGetLastError(NULL));
    part(rank, comm, stream);
    *end = sim_clock();
    ncclCommDestroy(comm);
}

/* run_ranks - rank 0 is the test itself: its assertions count, and so does the other's status.
 * returns: when each was done */
static const double *run_ranks(part *part)
{
    ncclUniqueId id;
    double *ends =
        mmap(NULL, RANKS * sizeof *ends, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_int_eq(ncclGetUniqueId(&id), ncclSuccess);
    pid_t other = fork();
    if (other == 0) {
        rank_main(1, id, part, &ends[1]);
        _exit(0);
    }
    rank_main(0, id, part, &ends[0]);
    int status;
    ck_assert_int_eq(waitpid(other, &status, 0), other);
    ck_assert_int_eq(status, 0);
    return ends;
}

static const struct {
    ncclRedOp_t op;
    double expected[COUNT];
} reductions[] = {
    {ncclSum, {4, 6.5, 9}},
    {ncclMax, {3, 4.5, 6}},
    {ncclMin, {1, 2, 3}},
    {ncclAvg, {2, 3.25, 4.5}},
};

static int reduction; /* that the ranks do */

static void reduce(int rank, ncclComm_t comm, cudaStream_t stream)
{
    static const float values[RANKS][COUNT] = {{1, 2, 3}, {3, 4.5, 6}};
    float singles[COUNT];
    double doubles[COUNT];
    uint16_t halves[COUNT];
    for (int i = 0; i < COUNT; i++) {
        doubles[i] = (double)values[rank][i];
        halves[i] = half_from_double(doubles[i]);
    }
    void *s = sent(values[rank], sizeof singles, stream),
         *d = sent(doubles, sizeof doubles, stream);
    void *h = sent(halves, sizeof halves, stream);
    ncclRedOp_t op = reductions[reduction].op;
    ck_assert_int_eq(ncclAllReduce(s, s, COUNT, ncclFloat32, op, comm, stream), ncclSuccess);
    ck_assert_int_eq(ncclAllReduce(d, d, COUNT, ncclFloat64, op, comm, stream), ncclSuccess);
    ck_assert_int_eq(ncclAllReduce(h, h, COUNT, ncclFloat16, op, comm, stream), ncclSuccess);
    fetch(singles, s, sizeof singles, stream);
    fetch(doubles, d, sizeof doubles, stream);
    fetch(halves, h, sizeof halves, stream);
    for (int i = 0; i < COUNT; i++) {
        double expected = reductions[reduction].expected[i];
        ck_assert_double_eq((double)singles[i], expected);
        ck_assert_double_eq(doubles[i], expected);
        ck_assert_double_eq((double)half_to_float(halves[i]), expected);
    }
}

START_TEST(reductions_are_those_of_all_ranks)
{
    reduction = _i;
    run_ranks(reduce);
}
END_TEST

static void share(int rank, ncclComm_t comm, cudaStream_t stream)
{
    const float mine[2] = {(float)(10 + rank), (float)(20 + rank)};
    float gathered[4], scattered, broadcast[2];
    void *input = sent(mine, sizeof mine, stream),
         *output = sent(gathered, sizeof gathered, stream);
    ck_assert_int_eq(ncclAllGather(input, output, 2, ncclFloat32, comm, stream), ncclSuccess);
    fetch(gathered, output, sizeof gathered, stream);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(gathered[i], (float)(10 + 10 * (i % 2) + i / 2));
    ck_assert_int_eq(ncclReduceScatter(input, output, 1, ncclFloat32, ncclSum, comm, stream),
                     ncclSuccess);
    fetch(&scattered, output, sizeof scattered, stream);
    ck_assert_float_eq(scattered, rank == 0 ? 21 : 41);
    ck_assert_int_eq(
        ncclBroadcast(rank == 1 ? input : NULL, output, 2, ncclFloat32, 1, comm, stream),
        ncclSuccess);
    fetch(broadcast, output, sizeof broadcast, stream);
    ck_assert_float_eq(broadcast[0], 11);
    ck_assert_float_eq(broadcast[1], 21);
}

START_TEST(shares_are_gathered_scattered_and_broadcast)
{
    run_ranks(share);
}
END_TEST

/* More than any buffer between them holds, there and back. */
static void exchange(int rank, ncclComm_t comm, cudaStream_t stream)
{
    float *values = malloc(LARGE * sizeof *values);
    for (int i = 0; i < LARGE; i++)
        values[i] = (float)(i % 1000 + rank);
    void *output = sent(values, LARGE * sizeof *values, stream);
    void *input = sent(values, LARGE * sizeof *values, stream);
    for (int turn = 0; turn < RANKS; turn++)
        ck_assert_int_eq(turn == rank
                             ? ncclSend(input, LARGE, ncclFloat32, 1 - rank, comm, stream)
                             : ncclRecv(output, LARGE, ncclFloat32, 1 - rank, comm, stream),
                         ncclSuccess);
    fetch(values, output, LARGE * sizeof *values, stream);
    for (int i = 0; i < LARGE; i++)
        ck_assert_float_eq(values[i], (float)(i % 1000 + 1 - rank));
    free(values);
}

START_TEST(messages_go_there_and_back)
{
    run_ranks(exchange);
}
END_TEST

/* 25 MB are 1 ms for a link of 25 GB/s, and the two halves of an all-reduce each send half. */
static void reduce_late(int rank, ncclComm_t comm, cudaStream_t stream)
{
    enum { SCALE = 50, ELEMENTS = 2500 };
    static float values[ELEMENTS];
    void *x = sent(values, sizeof values, stream);
    sim_set_scale(SCALE);
    sim_clock_wait(rank == 1 ? 5 * ms : 1 * ms);
    ck_assert_int_eq(ncclAllReduce(x, x, ELEMENTS, ncclFloat32, ncclSum, comm, stream),
                     ncclSuccess);
    ck_assert_double_lt(sim_clock(), rank == 1 ? 5.1 * ms : 1.1 * ms);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
}

START_TEST(a_collective_ends_for_all_when_the_last_has_come)
{
    setenv("SIM_PROFILE", _i ? "v100-pcie" : "v100-nvlink", 1);
    double expected = 5 * ms + (_i ? 2 * 25 / 15.75 * ms : 1 * ms);
    const double *ends = run_ranks(reduce_late);
    for (int rank = 0; rank < RANKS; rank++) {
        ck_assert_double_ge(ends[rank], expected);
        ck_assert_double_lt(ends[rank], expected + 0.1 * ms);
    }
    ck_assert_double_eq(ends[0], ends[1]);
}
END_TEST

static void expect_failure(ncclComm_t comm, ncclResult_t result, ncclResult_t expected,
                           const char *says)
{
    ncclResult_t later;
    ck_assert_str_eq(ncclGetErrorString(result), ncclGetErrorString(expected));
    ck_assert_int_eq(ncclCommGetAsyncError(comm, &later), ncclSuccess);
    ck_assert_int_eq(later, expected);
    ck_assert_msg(strstr(ncclGetLastError(comm), says), "\"%s\" does not say \"%s\"",
                  ncclGetLastError(comm), says);
}

static void leave_alone(int rank, ncclComm_t comm, cudaStream_t stream)
{
    float value = 1;
    void *x = sent(&value, sizeof value, stream);
    if (rank == 1)
        _exit(0);
    expect_failure(comm, ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, stream),
                   ncclRemoteError, "rank 1");
    ck_assert_int_eq(ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, stream), ncclRemoteError);
}

static void disagree(int rank, ncclComm_t comm, cudaStream_t stream)
{
    float values[2] = {1, 2};
    void *x = sent(values, sizeof values, stream);
    expect_failure(comm, ncclAllReduce(x, x, 1 + (size_t)rank, ncclFloat32, ncclSum, comm, stream),
                   ncclRemoteError, "rank 1");
}

static atomic_bool *rank_0_gave_up; /* shared */

static void stay_away(int rank, ncclComm_t comm, cudaStream_t stream)
{
    float value = 1;
    void *x = sent(&value, sizeof value, stream);
    while (rank == 1 && !atomic_load(rank_0_gave_up))
        usleep(1000);
    if (rank == 0)
        expect_failure(comm, ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, stream),
                       ncclSystemError, "rank 1");
    atomic_store(rank_0_gave_up, true);
}

START_TEST(peers_that_leave_disagree_or_stay_away)
{
    static part *const parts[] = {leave_alone, disagree, stay_away};
    wait_limit_set(_i == 2 ? 0.5 : 30);
    rank_0_gave_up = mmap(NULL, sizeof *rank_0_gave_up, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run_ranks(parts[_i]);
}
END_TEST

static void use_wrongly(int rank, ncclComm_t comm, cudaStream_t stream)
{
    float value = 1;
    void *x = sent(&value, sizeof value, stream);
    cudaStream_t other = stream_new(1 - rank);
    ck_assert_int_eq(ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, other), ncclInvalidUsage);
    ck_assert_int_eq(ncclSend(x, 1, ncclFloat32, rank, comm, stream), ncclInvalidArgument);
    ck_assert_int_eq(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream), ncclInvalidArgument);
    ck_assert_int_eq(ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
}

START_TEST(wrong_use_is_refused)
{
    run_ranks(use_wrongly);
}
END_TEST

static void use_host_memory(int rank, ncclComm_t comm, cudaStream_t stream)
{
    float value = (float)rank;
    ck_assert_int_eq(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, stream),
                     ncclUnhandledCudaError);
    ck_assert_ptr_nonnull(strstr(ncclGetLastError(comm), "ordinary host memory"));
}

START_TEST(memory_must_be_the_devices)
{
    run_ranks(use_host_memory);
}
END_TEST

START_TEST(two_ranks_need_two_devices)
{
    ncclUniqueId id;
    ncclComm_t comm;
    ck_assert_int_eq(ncclGetUniqueId(&id), ncclSuccess);
    pid_t other = fork();
    ncclResult_t result = ncclCommInitRankConfig(&comm, 2, id, other == 0, NULL);
    if (other == 0)
        _exit(result == ncclInvalidUsage ? 0 : 1);
    ck_assert_int_eq(result, ncclInvalidUsage);
    int status;
    waitpid(other, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sim libraries");
    TCase *blas = tcase_create("cublas"), *nccl = tcase_create("nccl");
    tcase_set_timeout(blas, 60);
    tcase_set_timeout(nccl, 60);
    tcase_add_loop_test(blas, products_single, 0, PRODUCTS);
    tcase_add_loop_test(blas, products_double, 0, PRODUCTS);
    tcase_add_loop_test(blas, products_check_their_matrices, 0, OTHER_CURRENT + 1);
    tcase_add_loop_test(blas, products_take_whole_waves, 0, sizeof waves / sizeof waves[0]);
    tcase_add_loop_test(nccl, reductions_are_those_of_all_ranks, 0,
                        sizeof reductions / sizeof reductions[0]);
    tcase_add_test(nccl, shares_are_gathered_scattered_and_broadcast);
    tcase_add_test(nccl, messages_go_there_and_back);
    tcase_add_loop_test(nccl, a_collective_ends_for_all_when_the_last_has_come, 0, 2);
    tcase_add_loop_test(nccl, peers_that_leave_disagree_or_stay_away, 0, 3);
    tcase_add_test(nccl, wrong_use_is_refused);
    tcase_add_test(nccl, memory_must_be_the_devices);
    tcase_add_test(nccl, two_ranks_need_two_devices);
    suite_add_tcase(s, blas);
    suite_add_tcase(s, nccl);
    return s;
}

int main(void)
{
    return suite_run(suite());
}

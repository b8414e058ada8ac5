/* The five published speedups of two V100s, as the cost model predicts them for the work that the
 * assignment's criteria time, put together here from the calls that the device makes. One number of
 * the model is calibrated: the baseline's step time on one GPU. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cublas_v2.h"
#include "nccl.h"
#include "runtime/sim/sim_kernel.h"

enum { SCALE = 64, WIDTH = 2048 / SCALE, ROWS = 8192 / SCALE, BLOCKS = 8, MICROBATCHES = 8 };
enum { HALF = BLOCKS / 2, MICROBATCH = ROWS / MICROBATCHES };

struct gpu {
    int index;
    cudaStream_t compute, copy, communicate;
    cudaEvent_t event;
    cublasHandle_t cublas;
    float *memory; /* operands of everything: only the time counts */
};

static double seconds_taken(void)
{
    return sim_clock();
}

static void gpu_init(struct gpu *gpu, int index)
{
    gpu->index = index;
    cudaSetDevice(index);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&gpu->compute, cudaStreamNonBlocking), cudaSuccess);
    cudaStreamCreateWithFlags(&gpu->copy, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&gpu->communicate, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&gpu->event, cudaEventDisableTiming);
    cublasCreate(&gpu->cublas);
    cublasSetStream(gpu->cublas, gpu->compute);
    void *memory;
    size_t bytes = 3 * sizeof(float) * ROWS * (WIDTH > ROWS ? WIDTH : ROWS);
    ck_assert_int_eq(cudaMallocAsync(&memory, bytes, gpu->compute), cudaSuccess);
    cudaMemsetAsync(memory, 0, bytes, gpu->compute);
    gpu->memory = memory;
}

/* ---- the work of one GPU ---- */

static void product(struct gpu *gpu, int m, int n, int k)
{
    float one = 1, zero = 0, *a = gpu->memory, *b = a + ROWS * ROWS, *c = b + ROWS * ROWS;
    cudaSetDevice(gpu->index);
    ck_assert_int_eq(
        cublasSgemm(gpu->cublas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, m, b, k, &zero, c, m),
        CUBLAS_STATUS_SUCCESS);
}

/* A kernel that passes over so many matrices. */
static void pass(struct gpu *gpu, double matrices, int rows)
{
    cudaSetDevice(gpu->index);
    ck_assert(sim_launch_begin(gpu->compute, "pass"));
    sim_launch_end(gpu->compute, matrices * sizeof(float) * rows * WIDTH, 0);
}

/* x + 0.1 gelu(linear(x)): the bias repeated, the product on top, gelu with the residual. */
static void forward(struct gpu *gpu, int blocks, int rows)
{
    for (int i = 0; i < blocks; i++) {
        pass(gpu, 1, rows);
        product(gpu, WIDTH, rows, WIDTH);
        pass(gpu, 3, rows);
    }
}

/* The slope of gelu, the bias's gradient, the weight's, the input's on top of the residual's. The
 * first block's input needs none; gradients of later microbatches are added to those before. */
static void backward(struct gpu *gpu, int blocks, int rows, bool has_input_gradient, bool adds)
{
    for (int i = blocks - 1; i >= 0; i--) {
        pass(gpu, 3, rows);
        pass(gpu, 1, rows);
        product(gpu, WIDTH, WIDTH, rows);
        if (adds)
            pass(gpu, 3, WIDTH);
        if (i > 0 || has_input_gradient)
            product(gpu, WIDTH, rows, WIDTH);
    }
}

static void loss(struct gpu *gpu, int rows)
{
    pass(gpu, 2, rows);
    pass(gpu, 3, rows);
}

static void update(struct gpu *gpu, int blocks)
{
    pass(gpu, 3.0 * blocks, WIDTH);
}

static void finish(struct gpu *gpus, int n)
{
    for (int i = 0; i < n; i++)
        cudaStreamSynchronize(gpus[i].compute);
}

/* What is asked of `to` later happens after what was asked of `from` so far. */
static void order(struct gpu *of, cudaStream_t from, cudaStream_t to)
{
    cudaSetDevice(of->index);
    cudaEventRecord(of->event, from);
    cudaStreamWaitEvent(to, of->event, 0);
}

/* Rows go to the other GPU, once `ready`; the target's memory is allocated in its stream's order.
 */
static void transfer(struct gpu *from, struct gpu *to, cudaEvent_t ready, int rows)
{
    order(to, to->compute, from->copy);
    cudaStreamWaitEvent(from->copy, ready, 0);
    ck_assert_int_eq(cudaMemcpyPeerAsync(to->memory, to->index, from->memory, from->index,
                                         sizeof(float) * (size_t)(rows * WIDTH), from->copy),
                     cudaSuccess);
    order(from, from->copy, to->compute);
}

static void transfer_now(struct gpu *from, struct gpu *to, int rows)
{
    cudaEvent_t ready;
    cudaSetDevice(from->index);
    cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
    cudaEventRecord(ready, from->compute);
    transfer(from, to, ready, rows);
    cudaEventDestroy(ready);
}

/* ---- steps ---- */

static double baseline_step(void)
{
    struct gpu gpu;
    gpu_init(&gpu, 0);
    double begin = seconds_taken();
    forward(&gpu, BLOCKS, ROWS);
    loss(&gpu, ROWS);
    backward(&gpu, BLOCKS, ROWS, false, false);
    update(&gpu, BLOCKS);
    finish(&gpu, 1);
    return seconds_taken() - begin;
}

static void average(struct gpu *gpu, ncclComm_t comm, int rows)
{
    order(gpu, gpu->compute, gpu->communicate);
    ck_assert_int_eq(ncclAllReduce(gpu->memory, gpu->memory, (size_t)(rows * WIDTH), ncclFloat32,
                                   ncclSum, comm, gpu->communicate),
                     ncclSuccess);
    order(gpu, gpu->communicate, gpu->compute);
    pass(gpu, 2, rows);
}

static void rank_step(int rank, ncclUniqueId id, double *seconds)
{
    struct gpu gpu;
    ncclComm_t comm;
    gpu_init(&gpu, rank);
    ck_assert_int_eq(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    double begin = seconds_taken();
    forward(&gpu, BLOCKS, ROWS / 2);
    loss(&gpu, ROWS / 2);
    backward(&gpu, BLOCKS, ROWS / 2, false, false);
    for (int i = 0; i < BLOCKS; i++) {
        average(&gpu, comm, WIDTH);
        average(&gpu, comm, 1);
    }
    update(&gpu, BLOCKS);
    finish(&gpu, 1);
    *seconds = seconds_taken() - begin;
    ncclCommDestroy(comm);
}

static double parallel_step(void)
{
    ncclUniqueId id;
    double *seconds =
        mmap(NULL, 2 * sizeof *seconds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_int_eq(ncclGetUniqueId(&id), ncclSuccess);
    pid_t other = fork();
    rank_step(other == 0, id, &seconds[other == 0]);
    if (other == 0)
        _exit(0);
    int status;
    waitpid(other, &status, 0);
    ck_assert_int_eq(status, 0);
    return fmax(seconds[0], seconds[1]);
}

static double serial_step(void)
{
    struct gpu gpus[2];
    gpu_init(&gpus[0], 0);
    gpu_init(&gpus[1], 1);
    double begin = seconds_taken();
    forward(&gpus[0], HALF, ROWS);
    transfer_now(&gpus[0], &gpus[1], ROWS);
    forward(&gpus[1], HALF, ROWS);
    loss(&gpus[1], ROWS);
    backward(&gpus[1], HALF, ROWS, true, false);
    transfer_now(&gpus[1], &gpus[0], ROWS);
    backward(&gpus[0], HALF, ROWS, false, false);
    update(&gpus[0], HALF);
    update(&gpus[1], HALF);
    finish(gpus, 2);
    return seconds_taken() - begin;
}

/* Waves as the schedule has them. The host only asks, so the order in which it asks within a GPU is
 * all that counts. Results are marked: their transfer waits for nothing later. */
static void pipelined_forward(struct gpu *gpus)
{
    cudaEvent_t done[MICROBATCHES];
    for (int wave = 0; wave <= MICROBATCHES; wave++) {
        if (wave > 0) {
            transfer(&gpus[0], &gpus[1], done[wave - 1], MICROBATCH);
            forward(&gpus[1], HALF, MICROBATCH);
            cudaEventDestroy(done[wave - 1]);
        }
        if (wave < MICROBATCHES) {
            forward(&gpus[0], HALF, MICROBATCH);
            cudaEventCreateWithFlags(&done[wave], cudaEventDisableTiming);
            cudaEventRecord(done[wave], gpus[0].compute);
        }
    }
}

/* Transfers made in the calling thread carry its low sequence numbers: all of the last stage comes
 * before the first transfer. */
static double pipelined_step(bool transfers_in_tasks)
{
    struct gpu gpus[2];
    gpu_init(&gpus[0], 0);
    gpu_init(&gpus[1], 1);
    double begin = seconds_taken();
    pipelined_forward(gpus);
    pass(&gpus[1], 2, ROWS); /* the outputs joined */
    loss(&gpus[1], ROWS);
    for (int i = 0; i < MICROBATCHES; i++) {
        backward(&gpus[1], HALF, MICROBATCH, true, i > 0);
        if (transfers_in_tasks) {
            transfer_now(&gpus[1], &gpus[0], MICROBATCH);
            backward(&gpus[0], HALF, MICROBATCH, false, i > 0);
        }
    }
    for (int i = 0; i < MICROBATCHES && !transfers_in_tasks; i++) {
        transfer_now(&gpus[1], &gpus[0], MICROBATCH);
        backward(&gpus[0], HALF, MICROBATCH, false, i > 0);
    }
    update(&gpus[0], HALF);
    update(&gpus[1], HALF);
    finish(gpus, 2);
    return seconds_taken() - begin;
}

/* ---- the published figures ---- */

static void use_profile(const char *profile)
{
    setenv("SIM_PROFILE", profile, 1);
    sim_set_scale(SCALE);
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        (void)cudaDeviceEnablePeerAccess(1 - i, 0);
    }
    (void)cudaGetLastError();
}

static void expect_near(const char *what, double predicted, double published, double tolerance)
{
    printf("%-44s predicted %8.4g published %8.4g %+6.1f %%\n", what, predicted, published,
           100 * (predicted / published - 1));
    ck_assert_msg(fabs(predicted / published - 1) < tolerance, "%s: predicted %g, published %g",
                  what, predicted, published);
}

START_TEST(calibration)
{
    use_profile("v100-nvlink");
    expect_near("one GPU, ms (calibrated)", 1e3 * baseline_step(), 125.94, 0.005);
}
END_TEST

START_TEST(nvlink)
{
    use_profile("v100-nvlink");
    double serial = serial_step();
    printf("serial %g pipelined %g parallel %g\n", serial * 1e3, pipelined_step(true) * 1e3,
           parallel_step() * 1e3);
    expect_near("data parallel, NVLink", baseline_step() / parallel_step(), 1.81, 0.1);
    expect_near("pipeline, NVLink", serial / pipelined_step(true), 1.47, 0.1);
    expect_near("transfers in the calling thread", serial / pipelined_step(false), 1.06, 0.1);
}
END_TEST

START_TEST(pcie)
{
    use_profile("v100-pcie");
    printf("serial %g pipelined %g parallel %g\n", serial_step() * 1e3, pipelined_step(true) * 1e3,
           parallel_step() * 1e3);
    expect_near("data parallel, PCIe", baseline_step() / parallel_step(), 1.503, 0.1);
    expect_near("pipeline, PCIe", serial_step() / pipelined_step(true), 1.42, 0.1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("prediction");
    TCase *t = tcase_create("published");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, calibration);
    tcase_add_test(t, nvlink);
    tcase_add_test(t, pcie);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

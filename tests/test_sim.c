/* The simulated CUDA runtime: memory that only its device reaches, and virtual time of streams and
 * events. Each test runs in a process of its own: an illegal address stays. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"
#include "runtime/sim/sim_address.h"
#include "runtime/sim/sim_kernel.h"
#include "tests/suite.h"

#define OK(call)                                                                                   \
    ck_assert_msg((call) == cudaSuccess, "%s: %s", #call, cudaGetErrorString(cudaPeekAtLastError()))
#define FAILS(error, call) ck_assert_str_eq(cudaGetErrorName(call), cudaGetErrorName(error))

enum { N = 256, BYTES = N * sizeof(float) };
static const double ms = 1e-3;
static const double bytes_per_ms = 900e6; /* of device memory */

static cudaStream_t stream_new(int device)
{
    cudaStream_t stream;
    OK(cudaSetDevice(device));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaEvent_t event_new(int device)
{
    cudaEvent_t event;
    OK(cudaSetDevice(device));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static float *memory_new(cudaStream_t stream)
{
    void *memory;
    OK(cudaMallocAsync(&memory, BYTES, stream));
    return memory;
}

/* x += k, as a kernel */
static void add(cudaStream_t stream, float *x, float k)
{
    if (!sim_launch_begin(stream, "add"))
        return;
    float *view = sim_device_pointer(stream, x);
    for (int i = 0; i < N && sim_launch_ready(stream); i++)
        view[i] += k;
    sim_launch_end(stream, 2.0 * BYTES, N);
}

/* A kernel that takes so long. */
static void busy(cudaStream_t stream, double milliseconds)
{
    ck_assert(sim_launch_begin(stream, "busy"));
    sim_launch_end(stream, milliseconds * bytes_per_ms, 0);
}

static void expect_message(const char *part)
{
    const char *text = cudaGetErrorString(cudaPeekAtLastError());
    ck_assert_msg(strstr(text, part), "\"%s\" does not say \"%s\"", text, part);
}

/* ---- memory ---- */

static const struct {
    uint64_t address;
    int device;
} addresses[] = {
    {0, -1},
    {SIM_ADDRESS_BASE - 1, -1},
    {SIM_ADDRESS_BASE, 0},
    {SIM_ADDRESS_BASE + SIM_ADDRESS_SPAN - 1, 0},
    {SIM_ADDRESS_BASE + SIM_ADDRESS_SPAN, 1},
    {SIM_ADDRESS_BASE + 2 * SIM_ADDRESS_SPAN - 1, 1},
    {SIM_ADDRESS_BASE + 2 * SIM_ADDRESS_SPAN, -1},
    {UINT64_MAX, -1},
};

START_TEST(an_address_tells_its_device)
{
    ck_assert_int_eq(sim_address_device(addresses[_i].address), addresses[_i].device);
}
END_TEST

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    _exit(10 + sim_address_device((uint64_t)(uintptr_t)info->si_addr));
}

__attribute__((no_sanitize_address, no_sanitize_thread)) static float touch(const volatile float *x)
{
    return x[1];
}

START_TEST(the_host_faults_at_a_device_address)
{
    float *x = memory_new(stream_new(_i));
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &action, NULL);
        sigaction(SIGBUS, &action, NULL);
        touch(x);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 10 + _i);
}
END_TEST

START_TEST(fresh_memory_is_not_a_number)
{
    float host[N] = {0};
    cudaStream_t stream = stream_new(0);
    float *x = memory_new(stream);
    OK(cudaMemcpyAsync(host, x, BYTES, cudaMemcpyDeviceToHost, stream));
    for (int i = 0; i < N; i++)
        ck_assert(isnan(host[i]));
}
END_TEST

START_TEST(values_go_round_by_host_kernel_and_peer)
{
    float *host, back[N];
    OK(cudaHostAlloc((void **)&host, BYTES, cudaHostAllocDefault));
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    cudaStream_t streams[] = {stream_new(0), stream_new(1)};
    float *x[] = {memory_new(streams[0]), memory_new(streams[1])};
    OK(cudaMemcpyAsync(x[0], host, BYTES, cudaMemcpyHostToDevice, streams[0]));
    OK(cudaSetDevice(0));
    add(streams[0], x[0], 0.5f);
    OK(cudaMemcpyPeerAsync(x[1], 1, x[0], 0, BYTES, streams[0]));
    OK(cudaMemsetAsync(x[0], 0, BYTES, streams[0]));
    OK(cudaMemcpyAsync(back, x[1], BYTES, cudaMemcpyDefault, streams[1]));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(back[i], (float)i + 0.5f);
    OK(cudaMemcpyAsync(back, x[0], BYTES, cudaMemcpyDefault, streams[0]));
    ck_assert_float_eq(back[N - 1], 0);
    OK(cudaDeviceSynchronize());
    OK(cudaFreeHost(host));
}
END_TEST

START_TEST(a_pointer_of_another_device_breaks_the_device)
{
    cudaStream_t mine = stream_new(0);
    float *theirs = memory_new(stream_new(1));
    OK(cudaSetDevice(0));
    add(mine, theirs, 1);
    FAILS(cudaErrorIllegalAddress, cudaGetLastError());
    expect_message("kernel add on cuda:0 was given memory of cuda:1, 0 bytes into 1024 allocated");
    FAILS(cudaErrorIllegalAddress, cudaStreamSynchronize(mine));
    FAILS(cudaErrorIllegalAddress, cudaGetLastError());
}
END_TEST

START_TEST(host_and_freed_memory_break_the_device)
{
    static float host[N];
    cudaStream_t stream = stream_new(0);
    float *gone = memory_new(stream);
    OK(cudaFreeAsync(gone, stream));
    add(stream, _i ? host : gone, 1);
    FAILS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    expect_message(_i ? "ordinary host memory" : "memory of cuda:0 that was freed");
}
END_TEST

START_TEST(a_kernel_reaches_pinned_memory)
{
    float *pinned;
    cudaStream_t stream = stream_new(0);
    OK(cudaHostAlloc((void **)&pinned, BYTES, cudaHostAllocPortable));
    memset(pinned, 0, BYTES);
    add(stream, pinned, 2);
    OK(cudaGetLastError());
    ck_assert_float_eq(pinned[N - 1], 2);
    OK(cudaStreamSynchronize(stream));
    OK(cudaFreeHost(pinned));
}
END_TEST

START_TEST(a_launch_needs_its_stream_and_device)
{
    float *x = memory_new(stream_new(1));
    cudaStream_t stream = stream_new(0);
    OK(cudaSetDevice(1));
    add(stream, x, 1);
    FAILS(cudaErrorInvalidResourceHandle, cudaGetLastError());
    add(NULL, x, 1);
    FAILS(cudaErrorInvalidResourceHandle, cudaGetLastError());
    OK(cudaGetLastError());
}
END_TEST

enum place { HOST, DEVICE_0, DEVICE_1, FREED, PAST_END, NOWHERE };
static const struct {
    enum place to, from;
    enum cudaMemcpyKind kind;
    cudaError_t error;
} copies[] = {
    {DEVICE_0, HOST, cudaMemcpyHostToDevice, cudaSuccess},
    {HOST, DEVICE_0, cudaMemcpyDeviceToHost, cudaSuccess},
    {DEVICE_0, DEVICE_1, cudaMemcpyDeviceToDevice, cudaSuccess},
    {DEVICE_0, HOST, cudaMemcpyDefault, cudaSuccess},
    {HOST, HOST, cudaMemcpyHostToHost, cudaSuccess},
    {HOST, DEVICE_0, cudaMemcpyHostToDevice, cudaErrorInvalidValue},
    {DEVICE_0, HOST, cudaMemcpyDeviceToHost, cudaErrorInvalidValue},
    {DEVICE_0, HOST, cudaMemcpyDeviceToDevice, cudaErrorInvalidValue},
    {DEVICE_0, DEVICE_0, cudaMemcpyHostToDevice, cudaErrorInvalidValue},
    {HOST, DEVICE_0, (enum cudaMemcpyKind)7, cudaErrorInvalidMemcpyDirection},
    {HOST, FREED, cudaMemcpyDeviceToHost, cudaErrorInvalidValue},
    {FREED, HOST, cudaMemcpyHostToDevice, cudaErrorInvalidValue},
    {HOST, PAST_END, cudaMemcpyDeviceToHost, cudaErrorInvalidValue},
    {PAST_END, HOST, cudaMemcpyHostToDevice, cudaErrorInvalidValue},
    {NOWHERE, HOST, cudaMemcpyHostToDevice, cudaErrorInvalidValue},
};

START_TEST(copies_check_both_ends)
{
    static float host[2][N];
    cudaStream_t streams[] = {stream_new(0), stream_new(1)};
    float *x = memory_new(streams[0]), *freed = memory_new(streams[0]);
    OK(cudaFreeAsync(freed, streams[0]));
    float *places[] = {
        [HOST] = host[0], [DEVICE_0] = x,     [DEVICE_1] = memory_new(streams[1]),
        [FREED] = freed,  [PAST_END] = x + 1, [NOWHERE] = NULL,
    };
    float *to = places[copies[_i].to], *from = places[copies[_i].from];
    FAILS(copies[_i].error, cudaMemcpyAsync(to, copies[_i].from == HOST ? host[1] : from, BYTES,
                                            copies[_i].kind, streams[0]));
    FAILS(copies[_i].error, cudaGetLastError());
    OK(cudaStreamSynchronize(streams[0]));
}
END_TEST

START_TEST(peer_copies_and_fills_name_the_right_device)
{
    cudaStream_t streams[] = {stream_new(0), stream_new(1)};
    float *x[] = {memory_new(streams[0]), memory_new(streams[1])};
    FAILS(cudaErrorInvalidValue, cudaMemcpyPeerAsync(x[1], 0, x[0], 0, BYTES, streams[0]));
    expect_message("not memory of device 0 but memory of cuda:1");
    FAILS(cudaErrorInvalidValue, cudaMemcpyPeerAsync(x[1], 1, x[0], 1, BYTES, streams[0]));
    FAILS(cudaErrorInvalidValue, cudaMemsetAsync(x[1], 0, BYTES, streams[0]));
    OK(cudaMemsetAsync(x[1], 0, BYTES, streams[1]));
}
END_TEST

START_TEST(what_cannot_be_freed)
{
    cudaStream_t streams[] = {stream_new(0), stream_new(1)};
    float *x = memory_new(streams[0]);
    FAILS(cudaErrorInvalidValue, cudaFreeAsync(x + 1, streams[0]));
    FAILS(cudaErrorInvalidValue, cudaFreeAsync(x, streams[1]));
    OK(cudaFreeAsync(x, streams[0]));
    FAILS(cudaErrorInvalidValue, cudaFreeAsync(x, streams[0]));
    expect_message("was freed");
    FAILS(cudaErrorInvalidValue, cudaFreeHost(&x));
}
END_TEST

/* On a GPU the memory would be given out again while the copy still reads it. */
START_TEST(memory_in_use_by_another_stream_cannot_be_freed)
{
    cudaStream_t stream = stream_new(0), copying = stream_new(0);
    float *x = memory_new(stream), *y = memory_new(stream_new(1));
    cudaEvent_t copied = event_new(0);
    busy(copying, 1);
    OK(cudaMemcpyPeerAsync(y, 1, x, 0, BYTES, copying));
    OK(cudaEventRecord(copied, copying));
    FAILS(cudaErrorInvalidValue, cudaFreeAsync(x, stream));
    expect_message("another stream still works on");
    if (_i == 0)
        OK(cudaStreamWaitEvent(stream, copied, 0));
    else
        OK(cudaEventSynchronize(copied));
    OK(cudaFreeAsync(x, stream));
}
END_TEST

START_TEST(memory_is_limited_and_counted)
{
    void *memory;
    cudaMemPool_t pool;
    uint64_t used;
    size_t left, total;
    cudaStream_t stream = stream_new(1);
    OK(cudaDeviceGetDefaultMemPool(&pool, 1));
    FAILS(cudaErrorMemoryAllocation, cudaMallocAsync(&memory, (size_t)17 << 30, stream));
    expect_message("out of memory");
    float *x = memory_new(stream);
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    ck_assert_uint_eq(used, BYTES);
    OK(cudaMemGetInfo(&left, &total));
    ck_assert_uint_eq(total - left, BYTES);
    OK(cudaFreeAsync(x, stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    ck_assert_uint_eq(used, 0);
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used));
    ck_assert_uint_eq(used, BYTES);
}
END_TEST

/* ---- time ---- */

static void expect_time(double seconds, double expected)
{
    static const double host_calls = 0.1e-3; /* more than a few of them take */
    ck_assert_msg(seconds >= expected - 1e-9 && seconds < expected + host_calls,
                  "%g ms, not %g ms and a few calls", 1e3 * seconds, 1e3 * expected);
}

START_TEST(streams_run_beside_each_other_and_events_order_them)
{
    cudaStream_t a = stream_new(0), b = stream_new(1);
    cudaEvent_t event = event_new(0);
    OK(cudaSetDevice(0));
    busy(a, 2);
    OK(cudaEventRecord(event, a));
    busy(a, 1); /* after the event */
    if (_i)
        OK(cudaStreamWaitEvent(b, event, 0));
    OK(cudaSetDevice(1));
    busy(b, 2.5);
    expect_time(sim_clock(), 0);
    OK(cudaStreamSynchronize(b));
    expect_time(sim_clock(), _i ? 4.5 * ms : 2.5 * ms);
    OK(cudaSetDevice(0));
    OK(cudaDeviceSynchronize());
    expect_time(sim_clock(), _i ? 4.5 * ms : 3 * ms);
}
END_TEST

START_TEST(events_come_when_the_host_has_waited)
{
    cudaStream_t stream = stream_new(0);
    cudaEvent_t event = event_new(0);
    OK(cudaEventQuery(event));
    busy(stream, 1);
    OK(cudaEventRecord(event, stream));
    FAILS(cudaErrorNotReady, cudaEventQuery(event));
    FAILS(cudaErrorNotReady, cudaStreamQuery(stream));
    OK(cudaEventSynchronize(event));
    expect_time(sim_clock(), 1 * ms);
    OK(cudaEventQuery(event));
    OK(cudaStreamQuery(stream));
    busy(stream, 1);
    OK(cudaEventQuery(event)); /* means what it meant when it was recorded */
}
END_TEST

START_TEST(work_begins_when_it_was_asked_for)
{
    cudaStream_t stream = stream_new(0);
    sim_clock_wait(5 * ms);
    sim_clock_wait(4 * ms); /* is over */
    busy(stream, 1);
    OK(cudaStreamSynchronize(stream));
    expect_time(sim_clock(), 6 * ms);
}
END_TEST

START_TEST(launches_cost_the_host)
{
    cudaStream_t stream = stream_new(0);
    double before = sim_clock();
    for (int i = 0; i < 1000; i++)
        busy(stream, 0);
    ck_assert_double_eq_tol(sim_clock() - before, 3.8 * ms, 1e-9);
}
END_TEST

START_TEST(events_and_streams_that_are_none)
{
    cudaStream_t stream = stream_new(0), other = stream_new(1), gone = stream_new(1);
    cudaEvent_t event = event_new(0), forgotten = event_new(0);
    OK(cudaStreamDestroy(gone));
    OK(cudaEventDestroy(forgotten));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(gone));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(NULL));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventRecord(forgotten, stream));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventQuery(NULL));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventRecord(event, other));
    FAILS(cudaErrorInvalidDevice, cudaSetDevice(SIM_DEVICES));
}
END_TEST

/* A copy of 25 MB at 25, or twice over 15.75 GB/s; two one after the other; two in two directions
 */
START_TEST(links_carry_one_copy_at_a_time)
{
    enum { SCALE = 50, PART = 10000 };
    bool nvlink = _i == 0;
    double copy = nvlink ? 1 * ms : 2 * 25 / 15.75 * ms;
    setenv("SIM_PROFILE", nvlink ? "v100-nvlink" : "v100-pcie", 1);
    cudaStream_t streams[] = {stream_new(0), stream_new(0), stream_new(1)};
    void *x[2];
    for (int i = 0; i < 2; i++) {
        int can;
        OK(cudaSetDevice(i));
        OK(cudaDeviceCanAccessPeer(&can, i, 1 - i));
        ck_assert_int_eq(can, nvlink);
        FAILS(nvlink ? cudaSuccess : cudaErrorPeerAccessUnsupported,
              cudaDeviceEnablePeerAccess(1 - i, 0));
        OK(cudaMallocAsync(&x[i], PART, streams[2 * i]));
    }
    sim_set_scale(SCALE);
    double begin = sim_clock();
    OK(cudaMemcpyPeerAsync(x[1], 1, x[0], 0, PART, streams[0]));
    OK(cudaMemcpyPeerAsync(x[0], 0, x[1], 1, PART, streams[2]));
    OK(cudaStreamSynchronize(streams[0]));
    OK(cudaStreamSynchronize(streams[2]));
    expect_time(sim_clock() - begin, copy);
    begin = sim_clock();
    OK(cudaMemcpyPeerAsync(x[1], 1, x[0], 0, PART, streams[0]));
    OK(cudaMemcpyPeerAsync(x[1], 1, x[0], 0, PART, streams[1]));
    OK(cudaStreamSynchronize(streams[1]));
    expect_time(sim_clock() - begin, 2 * copy);
}
END_TEST

START_TEST(ordinary_host_memory_makes_the_host_wait)
{
    static char ordinary[15750];
    void *pinned, *x;
    sim_set_scale(32);
    double copy = 1024 * sizeof ordinary / 15.75e9;
    cudaStream_t stream = stream_new(0);
    OK(cudaHostAlloc(&pinned, sizeof ordinary, cudaHostAllocDefault));
    OK(cudaMallocAsync(&x, sizeof ordinary, stream));
    OK(cudaMemcpyAsync(x, pinned, sizeof ordinary, cudaMemcpyHostToDevice, stream));
    expect_time(sim_clock(), 0);
    OK(cudaMemcpyAsync(ordinary, x, sizeof ordinary, cudaMemcpyDeviceToHost, stream));
    expect_time(sim_clock(), 2 * copy);
}
END_TEST

/* ---- threads ---- */

struct lane {
    pthread_t thread;
    int device;
    double end;
};

/* Each thread drives its GPU, whose every third piece of work waits for an event of its own. */
static void *drive(void *context)
{
    struct lane *lane = context;
    cudaStream_t stream = stream_new(lane->device), copying = stream_new(lane->device);
    cudaEvent_t event = event_new(lane->device);
    float *x = memory_new(stream);
    for (int i = 0; i < 300; i++) {
        add(stream, x, 1);
        busy(i % 3 ? stream : copying, 0.01 * (i % 7));
        OK(cudaEventRecord(event, copying));
        OK(cudaStreamWaitEvent(stream, event, 0));
    }
    OK(cudaFreeAsync(x, stream));
    OK(cudaStreamSynchronize(stream));
    lane->end = sim_clock();
    return NULL;
}

START_TEST(times_do_not_depend_on_threads)
{
    double ends[2];
    for (int run = 0; run < 20; run++) {
        struct lane lanes[2] = {{.device = 0}, {.device = 1}};
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(pthread_create(&lanes[i].thread, NULL, drive, &lanes[i]), 0);
        for (int i = 0; i < 2; i++) {
            pthread_join(lanes[i].thread, NULL);
            ends[i] = run ? ends[i] : lanes[i].end;
            ck_assert_double_eq(lanes[i].end, ends[i]);
        }
    }
    ck_assert_double_gt(ends[0], 5 * ms);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sim");
    TCase *memory = tcase_create("memory"), *time = tcase_create("time");
    tcase_set_timeout(memory, 60);
    tcase_set_timeout(time, 60);
    tcase_add_loop_test(memory, an_address_tells_its_device, 0,
                        sizeof addresses / sizeof addresses[0]);
    tcase_add_loop_test(memory, the_host_faults_at_a_device_address, 0, SIM_DEVICES);
    tcase_add_test(memory, fresh_memory_is_not_a_number);
    tcase_add_test(memory, values_go_round_by_host_kernel_and_peer);
    tcase_add_test(memory, a_pointer_of_another_device_breaks_the_device);
    tcase_add_loop_test(memory, host_and_freed_memory_break_the_device, 0, 2);
    tcase_add_test(memory, a_kernel_reaches_pinned_memory);
    tcase_add_test(memory, a_launch_needs_its_stream_and_device);
    tcase_add_loop_test(memory, copies_check_both_ends, 0, sizeof copies / sizeof copies[0]);
    tcase_add_test(memory, peer_copies_and_fills_name_the_right_device);
    tcase_add_test(memory, what_cannot_be_freed);
    tcase_add_loop_test(memory, memory_in_use_by_another_stream_cannot_be_freed, 0, 2);
    tcase_add_test(memory, memory_is_limited_and_counted);
    tcase_add_loop_test(time, streams_run_beside_each_other_and_events_order_them, 0, 2);
    tcase_add_test(time, events_come_when_the_host_has_waited);
    tcase_add_test(time, work_begins_when_it_was_asked_for);
    tcase_add_test(time, launches_cost_the_host);
    tcase_add_test(time, events_and_streams_that_are_none);
    tcase_add_loop_test(time, links_carry_one_copy_at_a_time, 0, 2);
    tcase_add_test(time, ordinary_host_memory_makes_the_host_wait);
    tcase_add_test(time, times_do_not_depend_on_threads);
    suite_add_tcase(s, memory);
    suite_add_tcase(s, time);
    return s;
}

int main(void)
{
    return suite_run(suite());
}

/* The simulated CUDA runtime: virtual time of streams, events, links and the threads that drive
 * them. Each test runs in a process of its own, where time begins at 0. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "runtime/sim/sim_address.h"
#include "runtime/sim/sim_kernel.h"
#include "tests/sim.h"
#include "tests/suite.h"

static const double ms = 1e-3;

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
    OK(cudaEventSynchronize(event));
    expect_time(sim_clock(), 1 * ms);
    OK(cudaEventQuery(event));
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
    cudaStream_t stream = stream_new(0), other = stream_new(1);
    cudaEvent_t event = event_new(0), forgotten = event_new(0);
    OK(cudaEventDestroy(forgotten));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize((cudaStream_t)event));
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

int main(void)
{
    Suite *suite = suite_create("sim_time");
    TCase *tests = tcase_create("time");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, streams_run_beside_each_other_and_events_order_them, 0, 2);
    tcase_add_test(tests, events_come_when_the_host_has_waited);
    tcase_add_test(tests, work_begins_when_it_was_asked_for);
    tcase_add_test(tests, launches_cost_the_host);
    tcase_add_test(tests, events_and_streams_that_are_none);
    tcase_add_loop_test(tests, links_carry_one_copy_at_a_time, 0, 2);
    tcase_add_test(tests, ordinary_host_memory_makes_the_host_wait);
    tcase_add_test(tests, times_do_not_depend_on_threads);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

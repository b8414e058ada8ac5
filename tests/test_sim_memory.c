/* The simulated CUDA runtime: memory that only its device reaches. Each test runs in a process of
 * its own: an illegal address stays. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"
#include "runtime/sim/sim_address.h"
#include "tests/sim.h"
#include "tests/suite.h"

static void expect_message(const char *part)
{
    const char *text = cudaGetErrorString(cudaPeekAtLastError());
    ck_assert_msg(strstr(text, part), "\"%s\" does not say \"%s\"", text, part);
}

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
    OK(cudaMemcpyAsync(back, x[1], BYTES, cudaMemcpyDefault, streams[1]));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(back[i], (float)i + 0.5f);
    OK(cudaDeviceSynchronize());
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

START_TEST(peer_copies_name_the_right_device)
{
    cudaStream_t streams[] = {stream_new(0), stream_new(1)};
    float *x[] = {memory_new(streams[0]), memory_new(streams[1])};
    FAILS(cudaErrorInvalidValue, cudaMemcpyPeerAsync(x[1], 0, x[0], 0, BYTES, streams[0]));
    expect_message("not memory of device 0 but memory of cuda:1");
    FAILS(cudaErrorInvalidValue, cudaMemcpyPeerAsync(x[1], 1, x[0], 1, BYTES, streams[0]));
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
    size_t too_large = (size_t)17 << 30;
    cudaStream_t stream = stream_new(1);
    float *x = memory_new(stream);
    FAILS(cudaErrorMemoryAllocation, cudaMallocAsync(&memory, too_large, stream));
    expect_message("of whose 17179869184 bytes 1024 are in use");
    OK(cudaFreeAsync(x, stream));
    FAILS(cudaErrorMemoryAllocation, cudaMallocAsync(&memory, too_large, stream));
    expect_message("of whose 17179869184 bytes 0 are in use");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_memory");
    TCase *tests = tcase_create("memory");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, an_address_tells_its_device, 0,
                        sizeof addresses / sizeof addresses[0]);
    tcase_add_loop_test(tests, the_host_faults_at_a_device_address, 0, SIM_DEVICES);
    tcase_add_test(tests, fresh_memory_is_not_a_number);
    tcase_add_test(tests, values_go_round_by_host_kernel_and_peer);
    tcase_add_test(tests, a_pointer_of_another_device_breaks_the_device);
    tcase_add_loop_test(tests, host_and_freed_memory_break_the_device, 0, 2);
    tcase_add_test(tests, a_kernel_reaches_pinned_memory);
    tcase_add_test(tests, a_launch_needs_its_stream_and_device);
    tcase_add_loop_test(tests, copies_check_both_ends, 0, sizeof copies / sizeof copies[0]);
    tcase_add_test(tests, peer_copies_name_the_right_device);
    tcase_add_test(tests, what_cannot_be_freed);
    tcase_add_loop_test(tests, memory_in_use_by_another_stream_cannot_be_freed, 0, 2);
    tcase_add_test(tests, memory_is_limited_and_counted);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

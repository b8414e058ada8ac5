#ifndef TESTS_SIM_H
#define TESTS_SIM_H
/* sim.h - calls of the simulated CUDA runtime that should succeed, or fail; small kernels. */
#include <check.h>

#include "cuda_runtime_api.h"
#include "runtime/sim/sim_kernel.h"

#define OK(call)                                                                                   \
    ck_assert_msg((call) == cudaSuccess, "%s: %s", #call, cudaGetErrorString(cudaPeekAtLastError()))
#define FAILS(error, call) ck_assert_str_eq(cudaGetErrorName(call), cudaGetErrorName(error))

enum { N = 256, BYTES = N * sizeof(float) };
static const double bytes_per_ms = 900e6; /* of device memory */

static inline cudaStream_t stream_new(int device)
{
    cudaStream_t stream;
    OK(cudaSetDevice(device));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static inline cudaEvent_t event_new(int device)
{
    cudaEvent_t event;
    OK(cudaSetDevice(device));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static inline float *memory_new(cudaStream_t stream)
{
    void *memory;
    OK(cudaMallocAsync(&memory, BYTES, stream));
    return memory;
}

/* x += k, as a kernel */
static inline void add(cudaStream_t stream, float *x, float k)
{
    if (!sim_launch_begin(stream, "add"))
        return;
    float *view = sim_device_pointer(stream, x);
    for (int i = 0; i < N && sim_launch_ready(stream); i++)
        view[i] += k;
    sim_launch_end(stream, 2.0 * BYTES);
}

/* A kernel that takes so long. */
static inline void busy(cudaStream_t stream, double milliseconds)
{
    ck_assert(sim_launch_begin(stream, "busy"));
    sim_launch_end(stream, milliseconds * bytes_per_ms);
}
#endif

#ifndef RUNTIME_CUDA_KERNEL_H
#define RUNTIME_CUDA_KERNEL_H
/* kernel.h - one source for two compilers. nvcc makes kernels of the .cu files, and a C compiler
 * makes of them, for the simulated device, functions that do a kernel's work in one loop.
 *
 *     KERNEL(scale, float *out, const float *x, int64_t n, float k)
 *     {
 *         EACH(i, n)
 *         out[i] = x[i] * k;
 *     }
 *
 * A launch names every pointer into device memory, for the simulation to translate:
 *
 *     LAUNCH_BEGIN(stream, "scale");
 *     DEVICE_POINTER(stream, out);
 *     DEVICE_POINTER(stream, x);
 *     LAUNCH(stream, n, scale, out, x, n, k);
 *     LAUNCH_END(stream, bytes);
 *
 * n: how many iterations EACH makes together; bytes: what is read and written. A launch that fails
 * leaves its error for cudaGetLastError. Kernels use neither shared memory nor synchronisation. */
#include <stdint.h>

#ifdef __CUDACC__

#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define KERNEL_FUNCTION static __forceinline__ __device__
#define EACH(i, n)                                                                                 \
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n);                      \
         i += gridDim.x * (int64_t)blockDim.x)

enum { BLOCK_THREADS = 256, GRID_BLOCKS = 2048 };

#define LAUNCH_BEGIN(stream, name) (void)0
#define DEVICE_POINTER(stream, pointer) (void)0
#define LAUNCH(stream, n, kernel, ...)                                                             \
    kernel<<<grid_blocks(n), BLOCK_THREADS, 0, stream>>>(__VA_ARGS__)
#define LAUNCH_END(stream, bytes) (void)(bytes)

/* grid_blocks - for n iterations; beyond the limit each thread makes several */
static inline unsigned grid_blocks(int64_t n)
{
    int64_t blocks = (n + BLOCK_THREADS - 1) / BLOCK_THREADS;
    return (unsigned)(blocks < GRID_BLOCKS ? blocks : GRID_BLOCKS);
}

#else

#include "runtime/sim/sim_kernel.h"

#define KERNEL(name, ...) static void name(__VA_ARGS__)
#define KERNEL_FUNCTION static inline __attribute__((always_inline))
#define EACH(i, n) for (int64_t i = 0; i < (n); i++)

#define LAUNCH_BEGIN(stream, name)                                                                 \
    if (!sim_launch_begin((stream), (name)))                                                       \
    return
#define DEVICE_POINTER(stream, pointer) ((pointer) = sim_device_pointer((stream), (pointer)))
#define LAUNCH(stream, n, kernel, ...) (sim_launch_ready(stream) ? (kernel)(__VA_ARGS__) : (void)0)
#define LAUNCH_END(stream, bytes) sim_launch_end((stream), (double)(bytes))

#endif
#endif

#ifndef RUNTIME_CUDA_KERNELS_H
#define RUNTIME_CUDA_KERNELS_H
/* kernels.h - launching the kernels of elementwise.cu and reduce.cu.
 *
 * Pointers are into the memory of the stream's device. What is computed in is FLOAT64 if `wide`,
 * else FLOAT32. A launch that fails leaves its error for cudaGetLastError. */
#include <cuda_runtime_api.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "runtime/device_internal.h"
#include "runtime/loop.h"

/* launch_unary, launch_binary - as in device_internal.h; operand 0 is the output
 * launch_copy - operand 0 = operand 1. launch_fill - operand 0 = k */
void launch_unary(cudaStream_t stream, enum unary op, bool wide, const struct loop *loop, double k);
void launch_binary(cudaStream_t stream, enum binary op, bool wide, const struct loop *loop,
                   double k);
void launch_copy(cudaStream_t stream, bool wide, const struct loop *loop);
void launch_fill(cudaStream_t stream, bool wide, const struct loop *loop, double k);

/* launch_mse_grad - out[i] = *gradient * 2 / n * (output[i] - target[i]) */
void launch_mse_grad(cudaStream_t stream, bool wide, void *out, const void *gradient,
                     const void *output, const void *target, int64_t n);

/* launch_add_many - out[j][i] += k * x[j][i] for pairs of equal size */
enum { PAIRS = 32 };
struct pairs {
    int n;
    struct pair {
        void *out;
        const void *x;
        int64_t numel;
    } at[PAIRS];
};
void launch_add_many(cudaStream_t stream, bool wide, const struct pairs *pairs, double k);

/* reduction - the terms that x's elements make, summed over one loop's places for each of another
 * loop's. The sum of a place is made of `parts` sums, of every parts-th term each. */
struct reduction {
    const void *x, *y;        /* term: x, or (x - y)² if y is not NULL, at the same place */
    struct loop kept, summed; /* operand 0 has the strides */
    int64_t kept_n, summed_n; /* places */
    int64_t parts;
    void *out;     /* (parts, kept_n), contiguous */
    bool out_wide; /* FLOAT64 */
    double k;      /* what the sums are multiplied by */
};
void launch_sum(cudaStream_t stream, bool wide, const struct reduction *reduction);

#ifdef __cplusplus
}
#endif
#endif

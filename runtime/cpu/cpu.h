#ifndef RUNTIME_CPU_CPU_H
#define RUNTIME_CPU_CPU_H
/* cpu.h - the CPU device's own files among themselves. */
#include "runtime/half.h"
#include "runtime/loop.h"
#include "runtime/tensor_internal.h"

/* ---- alloc.c ---- */
void *cpu_alloc(int index, size_t bytes);
void cpu_free(int index, void *memory, size_t bytes);

/* ---- convert.c ---- */

/* convert - n elements from one dtype and stride (in elements) to another */
void convert(int64_t n, void *out, enum dtype out_dtype, int64_t out_stride, const void *in,
             enum dtype in_dtype, int64_t in_stride);

/* ---- loop.c ---- */

/* loop_run - call `body` for each innermost row: n elements, starting at data[i] in operand i, with
 * the stride loop->operand[i].strides[loop->ndim - 1] */
typedef void loop_body(void *context, const struct loop *loop, int64_t n, char *const *data);
void loop_run(const struct loop *loop, loop_body *body, void *context);

/* loop_stride - the innermost stride of operand i */
static inline int64_t loop_stride(const struct loop *loop, int i)
{
    return loop->operand[i].strides[loop->ndim - 1];
}

/* ---- kernels.c: n contiguous elements each ---- */

/* out[i] = f(a[i], b[i], k); b is NULL for functions of one tensor; out may be a or b */
typedef void kernel_fn(int64_t n, void *out, const void *a, const void *b, double k);
kernel_fn *cpu_unary_kernel(enum unary op, enum dtype dtype);
kernel_fn *cpu_binary_kernel(enum binary op, enum dtype dtype);

/* sum of x[i]; sum of (a[i] - b[i])²; sums[i] += x[i] */
double cpu_kernel_sum(int64_t n, const void *x, enum dtype dtype);
double cpu_kernel_squares(int64_t n, const void *a, const void *b, enum dtype dtype);
void cpu_kernel_add_to(int64_t n, double *sums, const void *x, enum dtype dtype);

/* ---- elementwise.c, reduce.c, gemm.c: the device's operations ---- */
int cpu_copy(struct tensor *out, const struct tensor *x);
int cpu_fill(struct tensor *out, double value);
int cpu_unary(enum unary op, struct tensor *out, const struct tensor *x, double k);
int cpu_binary(enum binary op, struct tensor *out, const struct tensor *a, const struct tensor *b,
               double k);
int cpu_sum(struct tensor *out, const struct tensor *x, double k);
int cpu_mse(struct tensor *out, const struct tensor *output, const struct tensor *target);
int cpu_mse_grad(struct tensor *out, const struct tensor *gradient, const struct tensor *output,
                 const struct tensor *target);
int cpu_gemm(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta);
#endif

/* kernels.c - the loops that the CPU spends its time in, apart from matrix products. */
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/functions.h"
#include "runtime/cpu/simd.h"

/* ---- functions of each element ---- */

#define KERNEL_PARAMETERS (int64_t n, void *out, const void *a, const void *b, double k)

#define KERNEL(name, type, expression)                                                             \
    KERNEL_BODY void name##_body(int64_t n, void *out_, const void *a_, const void *b_, double k_) \
    {                                                                                              \
        type *out = out_;                                                                          \
        const type *a = a_, *b = b_, k = (type)k_;                                                 \
        (void)b, (void)k;                                                                          \
        INDEPENDENT_LOOP                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = (expression);                                                                 \
    }                                                                                              \
    SIMD_DISPATCH(void, name, KERNEL_PARAMETERS, (n, out, a, b, k))

/* For both dtypes. */
#define KERNELS(name, expression_f32, expression_f64)                                              \
    KERNEL(kernel_##name##_f32, float, expression_f32)                                             \
    KERNEL(kernel_##name##_f64, double, expression_f64)

KERNELS(scale, a[i] * k, a[i] * k)
KERNELS(divide, a[i] / k, a[i] / k)
KERNELS(shift, a[i] + k, a[i] + k)
KERNELS(square, a[i] * a[i], a[i] * a[i])
KERNELS(tanh, tanh_f32(a[i]), tanh_f64(a[i]))
KERNELS(relu, a[i] < 0 ? 0 : a[i], a[i] < 0 ? 0 : a[i]) /* passes NAN on */
KERNELS(gelu, gelu_f32(a[i]), gelu_f64(a[i]))

KERNELS(add, a[i] + k * b[i], a[i] + k * b[i])
KERNELS(mul, a[i] * b[i], a[i] * b[i])
KERNELS(div, a[i] / b[i], a[i] / b[i])
KERNELS(gelu_residual, a[i] + k * gelu_f32(b[i]), a[i] + k * gelu_f64(b[i]))
KERNELS(square_grad, k *a[i] * (2 * b[i]), k *a[i] * (2 * b[i]))
KERNELS(tanh_grad, k *a[i] * (1 - b[i] * b[i]), k *a[i] * (1 - b[i] * b[i]))
KERNELS(relu_grad, b[i] > 0 ? k * a[i] : 0, b[i] > 0 ? k * a[i] : 0)
KERNELS(gelu_grad, k *a[i] * gelu_slope_f32(b[i]), k *a[i] * gelu_slope_f64(b[i]))

#define BOTH(name)                                                                                 \
    {                                                                                              \
        kernel_##name##_f32, kernel_##name##_f64                                                   \
    }

kernel_fn *cpu_unary_kernel(enum unary op, enum dtype dtype)
{
    static kernel_fn *const kernels[UNARY_COUNT][2] = {
        [UNARY_SCALE] = BOTH(scale),   [UNARY_DIVIDE] = BOTH(divide), [UNARY_SHIFT] = BOTH(shift),
        [UNARY_SQUARE] = BOTH(square), [UNARY_TANH] = BOTH(tanh),     [UNARY_RELU] = BOTH(relu),
        [UNARY_GELU] = BOTH(gelu),
    };
    return kernels[op][dtype == FLOAT64];
}

kernel_fn *cpu_binary_kernel(enum binary op, enum dtype dtype)
{
    static kernel_fn *const kernels[BINARY_COUNT][2] = {
        [BINARY_ADD] = BOTH(add),
        [BINARY_MUL] = BOTH(mul),
        [BINARY_DIV] = BOTH(div),
        [BINARY_GELU_RESIDUAL] = BOTH(gelu_residual),
        [BINARY_SQUARE_GRAD] = BOTH(square_grad),
        [BINARY_TANH_GRAD] = BOTH(tanh_grad),
        [BINARY_RELU_GRAD] = BOTH(relu_grad),
        [BINARY_GELU_GRAD] = BOTH(gelu_grad),
    };
    return kernels[op][dtype == FLOAT64];
}

/* ---- sums ----
 * In LANES independent double sums, so that they vectorise without reordering. */

enum { LANES = 16 };

#define SUM(name, type, term)                                                                      \
    KERNEL_BODY double name##_body(int64_t n, const void *a_, const void *b_)                      \
    {                                                                                              \
        const type *a = a_, *b = b_;                                                               \
        double lanes[LANES] = {0}, sum = 0;                                                        \
        int64_t i = 0;                                                                             \
        (void)b;                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int64_t j = i; j < i + LANES; j++)                                                \
                lanes[j - i] += (double)(term);                                                    \
        for (int64_t j = i; j < n; j++)                                                            \
            sum += (double)(term);                                                                 \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            sum += lanes[lane];                                                                    \
        return sum;                                                                                \
    }                                                                                              \
    SIMD_DISPATCH(double, name, (int64_t n, const void *a, const void *b), (n, a, b))

SUM(sum_f32, float, a[j])
SUM(sum_f64, double, a[j])
SUM(squares_f32, float, (a[j] - b[j]) * (a[j] - b[j]))
SUM(squares_f64, double, (a[j] - b[j]) * (a[j] - b[j]))

double cpu_kernel_sum(int64_t n, const void *x, enum dtype dtype)
{
    return (dtype == FLOAT64 ? sum_f64 : sum_f32)(n, x, NULL);
}

double cpu_kernel_squares(int64_t n, const void *a, const void *b, enum dtype dtype)
{
    return (dtype == FLOAT64 ? squares_f64 : squares_f32)(n, a, b);
}

#define ADD_TO(name, type)                                                                         \
    KERNEL_BODY void name##_body(int64_t n, double *sums, const void *x_)                          \
    {                                                                                              \
        const type *x = x_;                                                                        \
        INDEPENDENT_LOOP                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            sums[i] += (double)x[i];                                                               \
    }                                                                                              \
    SIMD_DISPATCH(void, name, (int64_t n, double *sums, const void *x), (n, sums, x))

ADD_TO(add_to_f32, float)
ADD_TO(add_to_f64, double)

void cpu_kernel_add_to(int64_t n, double *sums, const void *x, enum dtype dtype)
{
    (dtype == FLOAT64 ? add_to_f64 : add_to_f32)(n, sums, x);
}

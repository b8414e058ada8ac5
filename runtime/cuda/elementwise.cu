/* elementwise.cu - functions of each element. */
#include "runtime/cpu/functions.h"
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/place.h"

/* ---- kernels ----
 * a and b are the elements of operands 1 and 2, of which there may be fewer. Contiguous tensors of
 * the dtype computed in, which most are, need no looking up of places. */

#define MAP(name, suffix, type, expression)                                                        \
    KERNEL(map_##name##_##suffix, struct loop loop, int64_t n, bool direct, double k_)             \
    {                                                                                              \
        const type k = (type)k_;                                                                   \
        const struct loop_operand *out = &loop.operand[0];                                         \
        const struct loop_operand *pa = &loop.operand[loop.operands > 1 ? 1 : 0];                  \
        const struct loop_operand *pb = &loop.operand[loop.operands - 1];                          \
        (void)k, (void)pa, (void)pb;                                                               \
        if (direct) {                                                                              \
            EACH (i, n) {                                                                          \
                const type a = ((const type *)pa->data)[i], b = ((const type *)pb->data)[i];       \
                (void)a, (void)b;                                                                  \
                ((type *)out->data)[i] = (expression);                                             \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        EACH (i, n) {                                                                              \
            const struct place place = place_of(&loop, i);                                         \
            const type a = load_##suffix(pa, place.offset[pa - loop.operand]);                     \
            const type b = load_##suffix(pb, place.offset[pb - loop.operand]);                     \
            (void)a, (void)b;                                                                      \
            store_##suffix(out, place.offset[0], (expression));                                    \
        }                                                                                          \
    }

#define MAPS(name, expression_f32, expression_f64)                                                 \
    MAP(name, f32, float, expression_f32)                                                          \
    MAP(name, f64, double, expression_f64)

MAPS(copy, a, a)
MAPS(fill, k, k)

MAPS(scale, (a * k), (a * k))
MAPS(divide, a / k, a / k)
MAPS(shift, a + k, a + k)
MAPS(square, (a * a), (a * a))
MAPS(tanh, tanh_f32(a), tanh_f64(a))
MAPS(relu, a < 0 ? 0 : a, a < 0 ? 0 : a) /* passes NAN on */
MAPS(gelu, gelu_f32(a), gelu_f64(a))

MAPS(add, a + k * b, a + k * b)
MAPS(mul, (a * b), (a * b))
MAPS(div, a / b, a / b)
MAPS(gelu_residual, a + k * gelu_f32(b), a + k * gelu_f64(b))
MAPS(square_grad, (k * a * (2 * b)), (k * a * (2 * b)))
MAPS(tanh_grad, (k * a * (1 - b * b)), (k * a * (1 - b * b)))
MAPS(relu_grad, b > 0 ? k * a : 0, b > 0 ? k * a : 0)
MAPS(gelu_grad, (k * a * gelu_slope_f32(b)), (k * a * gelu_slope_f64(b)))

#define MSE_GRAD(suffix, type)                                                                     \
    KERNEL(mse_grad_##suffix, type *out, const type *gradient, const type *output,                 \
           const type *target, int64_t n)                                                          \
    {                                                                                              \
        const type k = (type)(2 * (double)*gradient / (double)n);                                  \
        EACH (i, n)                                                                                \
            out[i] = k * (output[i] - target[i]);                                                  \
    }
MSE_GRAD(f32, float)
MSE_GRAD(f64, double)

#define ADD_MANY(suffix, type)                                                                     \
    KERNEL(add_many_##suffix, struct pairs pairs, double k)                                        \
    {                                                                                              \
        for (int p = 0; p < pairs.n; p++) {                                                        \
            type *out = (type *)pairs.at[p].out;                                                   \
            const type *x = (const type *)pairs.at[p].x;                                           \
            EACH (i, pairs.at[p].numel)                                                            \
                out[i] += (type)k * x[i];                                                          \
        }                                                                                          \
    }
ADD_MANY(f32, float)
ADD_MANY(f64, double)

/* ---- launches ---- */

#ifndef __CUDACC_RTC__

typedef void map_kernel(struct loop loop, int64_t n, bool direct, double k);

/* The bytes of an operand, which are fewer than the loop has where it is repeated. */
static double operand_bytes(const struct loop *loop, int operand)
{
    double bytes = dtype_size(loop->operand[operand].dtype);
    for (int d = 0; d < loop->ndim; d++)
        bytes *= loop->operand[operand].strides[d] ? (double)loop->shape[d] : 1;
    return bytes;
}

static bool is_direct(const struct loop *loop, bool wide)
{
    bool direct = loop->ndim == 1;
    for (int o = 0; o < loop->operands; o++)
        direct = direct && loop->operand[o].strides[0] == 1 &&
                 loop->operand[o].dtype == (wide ? FLOAT64 : FLOAT32);
    return direct;
}

static void launch_map(cudaStream_t stream, const char *name, map_kernel *kernel, bool wide,
                       const struct loop *places, double k)
{
    struct loop loop = *places;
    double bytes = 0;
    int64_t n = 1;
    for (int d = 0; d < loop.ndim; d++)
        n *= loop.shape[d];
    if (n == 0)
        return;
    LAUNCH_BEGIN(stream, name);
    for (int o = 0; o < loop.operands; o++) {
        bytes += operand_bytes(&loop, o);
        DEVICE_POINTER(stream, loop.operand[o].data);
    }
    LAUNCH(stream, n, kernel, loop, n, is_direct(&loop, wide), k);
    LAUNCH_END(stream, bytes);
}

#define LAUNCH_MAP(name)                                                                           \
    launch_map(stream, #name, wide ? map_##name##_f64 : map_##name##_f32, wide, loop, k)
#define LAUNCH_CASE(op, name)                                                                      \
    case op:                                                                                       \
        LAUNCH_MAP(name);                                                                          \
        break;

void launch_copy(cudaStream_t stream, bool wide, const struct loop *loop)
{
    const double k = 0;
    LAUNCH_MAP(copy);
}

void launch_fill(cudaStream_t stream, bool wide, const struct loop *loop, double k)
{
    LAUNCH_MAP(fill);
}

void launch_unary(cudaStream_t stream, enum unary op, bool wide, const struct loop *loop, double k)
{
    switch (op) {
        LAUNCH_CASE(UNARY_SCALE, scale)
        LAUNCH_CASE(UNARY_DIVIDE, divide)
        LAUNCH_CASE(UNARY_SHIFT, shift)
        LAUNCH_CASE(UNARY_SQUARE, square)
        LAUNCH_CASE(UNARY_TANH, tanh)
        LAUNCH_CASE(UNARY_RELU, relu)
        LAUNCH_CASE(UNARY_GELU, gelu)
    case UNARY_COUNT:
        break;
    }
}

void launch_binary(cudaStream_t stream, enum binary op, bool wide, const struct loop *loop,
                   double k)
{
    switch (op) {
        LAUNCH_CASE(BINARY_ADD, add)
        LAUNCH_CASE(BINARY_MUL, mul)
        LAUNCH_CASE(BINARY_DIV, div)
        LAUNCH_CASE(BINARY_GELU_RESIDUAL, gelu_residual)
        LAUNCH_CASE(BINARY_SQUARE_GRAD, square_grad)
        LAUNCH_CASE(BINARY_TANH_GRAD, tanh_grad)
        LAUNCH_CASE(BINARY_RELU_GRAD, relu_grad)
        LAUNCH_CASE(BINARY_GELU_GRAD, gelu_grad)
    case BINARY_COUNT:
        break;
    }
}

void launch_mse_grad(cudaStream_t stream, bool wide, void *out, const void *gradient,
                     const void *output, const void *target, int64_t n)
{
    if (n == 0)
        return;
    LAUNCH_BEGIN(stream, "mse_grad");
    DEVICE_POINTER(stream, out);
    DEVICE_POINTER(stream, gradient);
    DEVICE_POINTER(stream, output);
    DEVICE_POINTER(stream, target);
    if (wide)
        LAUNCH(stream, n, mse_grad_f64, (double *)out, (const double *)gradient,
               (const double *)output, (const double *)target, n);
    else
        LAUNCH(stream, n, mse_grad_f32, (float *)out, (const float *)gradient,
               (const float *)output, (const float *)target, n);
    LAUNCH_END(stream, (wide ? 24.0 : 12.0) * (double)n);
}

void launch_add_many(cudaStream_t stream, bool wide, const struct pairs *given, double k)
{
    struct pairs pairs = *given;
    int64_t largest = 1;
    double elements = 0;
    LAUNCH_BEGIN(stream, "add_many");
    for (int p = 0; p < pairs.n; p++) {
        DEVICE_POINTER(stream, pairs.at[p].out);
        DEVICE_POINTER(stream, pairs.at[p].x);
        largest = pairs.at[p].numel > largest ? pairs.at[p].numel : largest;
        elements += (double)pairs.at[p].numel;
    }
    if (wide)
        LAUNCH(stream, largest, add_many_f64, pairs, k);
    else
        LAUNCH(stream, largest, add_many_f32, pairs, k);
    LAUNCH_END(stream, (wide ? 24.0 : 12.0) * elements);
}

#endif

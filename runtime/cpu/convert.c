#include <string.h>

#include "runtime/cpu/cpu.h"

#define SAME(x) (x)
#define HALF(x) half_from_double((double)(x))
#define HALF_TO_FLOAT(x) half_to_float(x)

#define CONVERT(name, out_type, in_type, expression)                                               \
    static void name(int64_t n, void *out_, int64_t out_stride, const void *in_,                   \
                     int64_t in_stride)                                                            \
    {                                                                                              \
        out_type *out = out_;                                                                      \
        const in_type *in = in_;                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i * out_stride] = (out_type)expression(in[i * in_stride]);                         \
    }

CONVERT(f32_from_f32, float, float, SAME)
CONVERT(f32_from_f64, float, double, SAME)
CONVERT(f32_from_f16, float, uint16_t, HALF_TO_FLOAT)
CONVERT(f64_from_f32, double, float, SAME)
CONVERT(f64_from_f64, double, double, SAME)
CONVERT(f64_from_f16, double, uint16_t, HALF_TO_FLOAT)
CONVERT(f16_from_f32, uint16_t, float, HALF)
CONVERT(f16_from_f64, uint16_t, double, HALF)
CONVERT(f16_from_f16, uint16_t, uint16_t, SAME)

typedef void convert_fn(int64_t n, void *out, int64_t out_stride, const void *in,
                        int64_t in_stride);

static convert_fn *const converters[3][3] = {
    [FLOAT32] = {[FLOAT32] = f32_from_f32, [FLOAT64] = f32_from_f64, [FLOAT16] = f32_from_f16},
    [FLOAT64] = {[FLOAT32] = f64_from_f32, [FLOAT64] = f64_from_f64, [FLOAT16] = f64_from_f16},
    [FLOAT16] = {[FLOAT32] = f16_from_f32, [FLOAT64] = f16_from_f64, [FLOAT16] = f16_from_f16},
};

void convert(int64_t n, void *out, enum dtype out_dtype, int64_t out_stride, const void *in,
             enum dtype in_dtype, int64_t in_stride)
{
    if (out_dtype == in_dtype && out_stride == 1 && in_stride == 1)
        memmove(out, in, (size_t)n * (size_t)dtype_size(out_dtype));
    else
        converters[out_dtype][in_dtype](n, out, out_stride, in, in_stride);
}

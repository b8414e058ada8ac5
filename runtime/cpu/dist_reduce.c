#include "runtime/dist_reduce.h"

#include <stdint.h>
#include <string.h>

/* Values are reduced a block at a time, so that partial results stay in the first-level cache. */
enum { BLOCK = 1024 };

/* ---- FLOAT16: bits to float and back, without branches, so that the loops are vectorised ---- */

static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float half_to_float(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    /* Moving the exponent by a multiplication makes subnormal numbers come out right as well. */
    float scaled = float_of_bits(magnitude) * 0x1p112f;
    uint32_t special = magnitude >= 0x0f800000 ? 0x7f800000 : 0; /* infinity and NaN */
    return float_of_bits(bits_of_float(scaled) | special | (uint32_t)(half & 0x8000) << 16);
}

/* float_to_half - rounded to nearest, ties to even */
static inline uint16_t float_to_half(float value)
{
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* Adding 0.5 leaves a float whose last bit counts 2^-24, the unit of subnormal halves. */
    uint32_t subnormal = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
    uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
    half = magnitude >= (143u << 23) - 0x1000 ? 0x7c00 : half; /* 65520 and more */
    half = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : half;
    return (uint16_t)(half | sign);
}

static void load_half(void *restrict values, const void *restrict source, int64_t n)
{
    float *restrict out = values;
    const uint16_t *restrict in = source;
    for (int64_t i = 0; i < n; i++)
        out[i] = half_to_float(in[i]);
}

static void store_half(void *restrict target, const void *restrict values, int64_t n)
{
    uint16_t *restrict out = target;
    const float *restrict in = values;
    for (int64_t i = 0; i < n; i++)
        out[i] = float_to_half(in[i]);
}

/* ---- acc = acc op x ---- */

#define SUM(a, x) ((a) + (x))
#define MIN(a, x) ((a) < (x) || (a) != (a) ? (a) : (x))
#define MAX(a, x) ((a) > (x) || (a) != (a) ? (a) : (x))

#define COMBINE(name, type, OP)                                                                    \
    static void name(void *restrict accumulator, const void *restrict source, int64_t n)           \
    {                                                                                              \
        type *restrict acc = accumulator;                                                          \
        const type *restrict x = source;                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            acc[i] = OP(acc[i], x[i]);                                                             \
    }
COMBINE(sum_float, float, SUM)
COMBINE(min_float, float, MIN)
COMBINE(max_float, float, MAX)
COMBINE(sum_double, double, SUM)
COMBINE(min_double, double, MIN)
COMBINE(max_double, double, MAX)

typedef void combine_fn(void *restrict accumulator, const void *restrict source, int64_t n);

static combine_fn *const combine_floats[] = {sum_float, min_float, max_float};
static combine_fn *const combine_doubles[] = {sum_double, min_double, max_double};

/* ---- the reduction ---- */

static void reduce_block(char *output, const void *const *sources, int n, int64_t at, int64_t count,
                         int size, combine_fn *combine)
{
    _Alignas(64) double accumulator[BLOCK];
    size_t offset = (size_t)at * (size_t)size, bytes = (size_t)count * (size_t)size;
    memcpy(accumulator, (const char *)sources[0] + offset, bytes);
    for (int i = 1; i < n; i++)
        combine(accumulator, (const char *)sources[i] + offset, count);
    memcpy(output + offset, accumulator, bytes);
}

static void reduce_half_block(char *output, const void *const *sources, int n, int64_t at,
                              int64_t count, combine_fn *combine)
{
    float accumulator[BLOCK], values[BLOCK];
    load_half(accumulator, (const uint16_t *)sources[0] + at, count);
    for (int i = 1; i < n; i++) {
        load_half(values, (const uint16_t *)sources[i] + at, count);
        combine(accumulator, values, count);
    }
    store_half((uint16_t *)output + at, accumulator, count);
}

void reduce_values(void *output, const void *const *sources, int n, int64_t count, enum dtype dtype,
                   enum dist_op op)
{
    combine_fn *combine = dtype == FLOAT64 ? combine_doubles[op] : combine_floats[op];
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t block = count - at < BLOCK ? count - at : BLOCK;
        if (dtype == FLOAT16)
            reduce_half_block(output, sources, n, at, block, combine);
        else
            reduce_block(output, sources, n, at, block, dtype_size(dtype), combine);
    }
}

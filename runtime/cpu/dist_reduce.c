#include "runtime/dist_reduce.h"

#include <stdint.h>
#include <string.h>

#include "runtime/cpu/cpu.h"

/* Values are reduced a block at a time, so that partial results stay in the first-level cache. */
enum { BLOCK = 1024 };

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
    convert(count, accumulator, FLOAT32, 1, (const uint16_t *)sources[0] + at, FLOAT16, 1);
    for (int i = 1; i < n; i++) {
        convert(count, values, FLOAT32, 1, (const uint16_t *)sources[i] + at, FLOAT16, 1);
        combine(accumulator, values, count);
    }
    convert(count, (uint16_t *)output + at, FLOAT16, 1, accumulator, FLOAT32, 1);
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

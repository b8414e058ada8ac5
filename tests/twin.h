#ifndef TESTS_TWIN_H
#define TESTS_TWIN_H
/* twin.h - the same tensors on the CPU and on a device, and whether they stay the same. */
#include <check.h>
#include <float.h>
#include <math.h>

#include "runtime/ops.h"
#include "runtime/ops_internal.h"
#include "runtime/rng.h"
#include "runtime/scope.h"
#include "tests/device.h"

static const enum dtype dtypes[] = {FLOAT32, FLOAT64, FLOAT16};
enum { DTYPES = 3 };

struct twin {
    struct tensor *cpu, *gpu;
};

enum layout_kind { PLAIN, TRANSPOSED, SLICED, REPEATED, LAYOUTS };

struct shape {
    int ndim;
    int64_t size[TENSOR_MAX_DIMS];
};

/* Normal numbers, drawn once and read from somewhere in between. */
enum { NUMBERS = 1 << 14 };
static double numbers[NUMBERS];
static uint32_t next_number;

static inline void draw_numbers(void)
{
    struct rng rng;
    rng_seed(&rng, 42);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = 2 * rng_gauss(&rng);
}

static inline struct tensor *drawn(const struct shape *shape, enum dtype dtype)
{
    struct tensor *x = tensor_empty(shape->ndim, shape->size, FLOAT64, CPU);
    double *data = tensor_data(x);
    for (int64_t i = 0; i < tensor_numel(x); i++)
        data[i] = numbers[next_number++ % NUMBERS];
    next_number += 37;
    return tensor_cast(x, dtype);
}

static inline struct tensor *viewed(struct tensor *base, const struct shape *shape,
                                    enum layout_kind layout)
{
    int last = shape->ndim - 1;
    switch (layout) {
    case TRANSPOSED:
        return last > 0 ? tensor_transpose(base, 0, last) : base;
    case SLICED:
        return last >= 0 ? tensor_slice(base, last, 1, shape->size[last]) : base;
    case REPEATED:
        return op_expand(base, shape->ndim, shape->size);
    default:
        return base;
    }
}

/* What such a view is made of. */
static inline struct shape base_of(struct shape shape, enum layout_kind layout)
{
    int last = shape.ndim - 1;
    if (layout == TRANSPOSED && last > 0) {
        int64_t first = shape.size[0];
        shape.size[0] = shape.size[last];
        shape.size[last] = first;
    } else if (layout == SLICED && last >= 0) {
        shape.size[last] += 3;
    } else if (layout == REPEATED) {
        for (int d = 0; d < shape.ndim; d += 2)
            shape.size[d] = 1;
    }
    return shape;
}

static inline struct twin twin_of(struct tensor *cpu, const struct shape *shape,
                                  enum layout_kind layout)
{
    struct tensor *gpu = tensor_to(cpu, FIRST_DEVICE);
    struct twin twin = {viewed(cpu, shape, layout), viewed(gpu, shape, layout)};
    ck_assert_ptr_nonnull(twin.cpu);
    ck_assert_ptr_nonnull(twin.gpu);
    return twin;
}

static inline struct twin twin_drawn(const struct shape *shape, enum dtype dtype,
                                     enum layout_kind layout)
{
    struct shape base = base_of(*shape, layout);
    return twin_of(drawn(&base, dtype), shape, layout);
}

static inline double ulps(enum dtype dtype, double n)
{
    return n * (dtype == FLOAT32 ? FLT_EPSILON : dtype == FLOAT64 ? DBL_EPSILON : 0x1p-10);
}

/* |got - expected| <= tolerance * (|expected| + scale); NAN and INFINITY where they belong */
static inline void check_close(struct twin twin, double tolerance, double scale, const char *what)
{
    int64_t n = tensor_numel(twin.cpu);
    double *got = scope_alloc((size_t)n * sizeof *got + 1);
    double *expected = scope_alloc((size_t)n * sizeof *expected + 1);
    ck_assert_msg(!error_occurred(), "%s: %s", what,
                  error_occurred() ? error_message(error_pending()) : "");
    ck_assert_int_eq(tensor_read(twin.cpu, expected), 0);
    ck_assert_int_eq(tensor_read(twin.gpu, got), 0);
    for (int64_t i = 0; i < n; i++) {
        bool same = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]));
        if (!same && !(fabs(got[i] - expected[i]) <= tolerance * (fabs(expected[i]) + scale)))
            ck_abort_msg("%s of %s %s: element %lld is %.17g, not %.17g", what,
                         tensor_shape_name(twin.cpu), dtype_name(tensor_dtype(twin.cpu)),
                         (long long)i, got[i], expected[i]);
    }
}

static inline const struct device_table *gpu_table(void)
{
    return plugin_current()->table;
}
#endif

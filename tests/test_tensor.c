/* Tensors: making, reading, changing in place, half precision, and what is refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "tests/suite.h"

#define ASSERT_REFUSED(type, failed)                                                               \
    do {                                                                                           \
        ck_assert_msg((failed), "%s should fail", #failed);                                        \
        ck_assert_msg(error_is(&(type)), "%s should be a %s", #failed, #type);                     \
        error_clear();                                                                             \
    } while (0)

static struct tensor *counting(int64_t rows, int64_t columns) /* 0, 1, 2, ... */
{
    struct tensor *x = tensor_zeros(SHAPE(rows, columns), FLOAT32, CPU);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)tensor_data(x))[i] = (float)i;
    return x;
}

static void assert_elements(const struct tensor *x, int n, const double *expected)
{
    double got[64];
    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(tensor_numel(x), n);
    ck_assert_int_eq(tensor_read(x, got), 0);
    for (int i = 0; i < n; i++)
        ck_assert_msg(got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i])),
                      "element %d: got %.9g, expected %.9g", i, got[i], expected[i]);
}
#define ASSERT_ELEMENTS(x, ...)                                                                    \
    assert_elements((x), (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                  \
                    (const double[]){__VA_ARGS__})

START_TEST(what_a_tensor_is)
{
    SCOPE;
    struct tensor *x = tensor_full(SHAPE(2, 3, 4), 1.5, FLOAT64, CPU);
    ck_assert_int_eq(tensor_ndim(x), 3);
    ck_assert_int_eq(tensor_size(x, 1), 3);
    ck_assert_int_eq(tensor_size(x, -1), 4);
    ck_assert_int_eq(tensor_shape(x)[0], 2);
    ck_assert_int_eq(tensor_strides(x)[0], 12);
    ck_assert_int_eq(tensor_strides(x)[1], 4);
    ck_assert_int_eq(tensor_numel(x), 24);
    ck_assert_int_eq(tensor_dtype(x), FLOAT64);
    ck_assert(device_equal(tensor_device(x), CPU));
    ck_assert(!tensor_requires_grad(x));
    ck_assert(tensor_is_contiguous(x));
    ck_assert(!tensor_is_contiguous(tensor_transpose(x, 0, 2)));
    ck_assert(tensor_is_contiguous(tensor_slice(x, 0, 1, 1)));
    ck_assert(!tensor_is_contiguous(tensor_slice(x, 2, 1, 2)));
    ck_assert(tensor_same_shape(x, tensor_zeros(SHAPE(2, 3, 4), FLOAT32, CPU)));
    ck_assert(!tensor_same_shape(x, tensor_zeros(SHAPE(2, 3), FLOAT32, CPU)));
    ck_assert_double_eq(tensor_get(x, 1, 2, 3), 1.5);
}
END_TEST

START_TEST(names)
{
    SCOPE;
    ck_assert_str_eq(tensor_shape_name(counting(8, 4)), "(8, 4)");
    ck_assert_str_eq(tensor_shape_name(tensor_zeros(0, NULL, FLOAT32, CPU)), "()");
    ck_assert_str_eq(tensor_shape_name(tensor_zeros(SHAPE(5), FLOAT32, CPU)), "(5)");
    ck_assert_str_eq(dtype_name(FLOAT16), "float16");
    ck_assert_int_eq(dtype_size(FLOAT16), 2);
    ck_assert_int_eq(dtype_size(FLOAT64), 8);
    ck_assert_str_eq(device_name(CPU), "cpu");
    ck_assert_str_eq(device_name(CUDA(1)), "cuda:1");
    ck_assert(!device_equal(CUDA(0), CUDA(1)));
    ck_assert(!device_equal(CUDA(0), CPU));
}
END_TEST

START_TEST(scalars_and_empty_tensors)
{
    SCOPE;
    struct tensor *scalar = tensor_full(0, NULL, 2.5, FLOAT32, CPU);
    ck_assert_int_eq(tensor_numel(scalar), 1);
    ck_assert_double_eq(tensor_item(scalar), 2.5);
    ck_assert_double_eq(tensor_get_at(scalar, 0, NULL), 2.5);
    struct tensor *empty = tensor_zeros(SHAPE(0, 3), FLOAT32, CPU);
    ck_assert_int_eq(tensor_numel(empty), 0);
    ck_assert(tensor_is_contiguous(empty));
    ck_assert_int_eq(tensor_read(empty, NULL), 0);
    struct tensor *deep = tensor_full(SHAPE(1, 2, 1, 2, 1, 2, 1, 2), 3, FLOAT32, CPU);
    ck_assert_int_eq(tensor_numel(deep), 16);
    ck_assert_double_eq(tensor_get(deep, 0, 1, 0, 1, 0, 1, 0, 1), 3);
}
END_TEST

START_TEST(impossible_tensors_are_refused)
{
    SCOPE;
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    ASSERT_REFUSED(ValueError, !tensor_zeros(9, nine, FLOAT32, CPU));
    ASSERT_REFUSED(ValueError, !tensor_zeros(-1, nine, FLOAT32, CPU));
    ASSERT_REFUSED(ValueError, !tensor_zeros(SHAPE(2, -1), FLOAT32, CPU));
    ASSERT_REFUSED(ValueError, !tensor_zeros(SHAPE(INT64_MAX, 2), FLOAT32, CPU));
    ASSERT_REFUSED(ValueError, !tensor_zeros(SHAPE(INT64_MAX / 2), FLOAT64, CPU));
    const int64_t huge = 1LL << 40; /* its strides overflow, its elements do not */
    ASSERT_REFUSED(ValueError, !tensor_zeros(SHAPE(0, huge, huge, huge, 0), FLOAT32, CPU));
    ASSERT_REFUSED(ValueError, !tensor_zeros(SHAPE(huge, huge, 0), FLOAT32, CPU));
    ASSERT_REFUSED(RuntimeError,
                   !tensor_zeros(SHAPE(2), FLOAT32, ((struct device){DEVICE_CPU, 1})));
    ASSERT_REFUSED(RuntimeError, !tensor_zeros(SHAPE(2), FLOAT32, CUDA(99)));
    ASSERT_REFUSED(RuntimeError, !tensor_zeros(SHAPE(2), FLOAT32, CUDA(-1)));
    ASSERT_REFUSED(ValueError, !tensors_new(-1));
    ck_assert_int_eq(tensors_new(3)->n, 3);
    ck_assert_ptr_null(tensors_new(3)->at[2]);
}
END_TEST

START_TEST(reading)
{
    SCOPE;
    struct tensor *x = counting(2, 3);
    ASSERT_ELEMENTS(x, 0, 1, 2, 3, 4, 5);
    ASSERT_ELEMENTS(tensor_transpose(x, 0, 1), 0, 3, 1, 4, 2, 5);
    ASSERT_ELEMENTS(tensor_slice(x, 1, 1, 2), 1, 2, 4, 5);
    ASSERT_ELEMENTS(tensor_from_doubles((double[]){1, 1e300}, SHAPE(2)), 1, 1e300);
    ck_assert_double_eq(tensor_get(x, 1, 2), 5);
    ck_assert(isnan(tensor_get(NULL, 0)));
    ck_assert(isnan(tensor_item(NULL)));
    ck_assert_int_eq(tensor_read(NULL, NULL), -1);
    ck_assert(!error_occurred());
    ASSERT_REFUSED(ValueError, isnan(tensor_item(x)));
    ASSERT_REFUSED(ValueError, isnan(tensor_get(x, 0)));
    ASSERT_REFUSED(ValueError, isnan(tensor_get(x, 2, 0)));
    ASSERT_REFUSED(ValueError, isnan(tensor_get(x, 0, -1)));
}
END_TEST

START_TEST(clone_is_apart)
{
    SCOPE;
    struct tensor *x = counting(2, 2), *copy = tensor_clone(tensor_transpose(x, 0, 1));
    tensor_zero_(x);
    ck_assert(tensor_is_contiguous(copy));
    ASSERT_ELEMENTS(copy, 0, 2, 1, 3);
}
END_TEST

START_TEST(in_place)
{
    SCOPE;
    struct tensor *x = counting(2, 2);
    ck_assert_ptr_eq(tensor_add_(x, counting(2, 2), 0.5), x);
    ASSERT_ELEMENTS(x, 0, 1.5, 3, 4.5);
    ASSERT_ELEMENTS(tensor_mul_(x, 2), 0, 3, 6, 9);
    ASSERT_ELEMENTS(tensor_div_(x, 3), 0, 1, 2, 3);
    ASSERT_ELEMENTS(tensor_fill_(x, 7), 7, 7, 7, 7);
    ASSERT_ELEMENTS(tensor_zero_(x), 0, 0, 0, 0);
    ASSERT_ELEMENTS(tensor_copy_(x, tensor_from_doubles((double[]){1, 2, 3, 4}, SHAPE(2, 2))), 1, 2,
                    3, 4);
    tensor_fill_(tensor_slice(x, 1, 0, 1), 9);
    ASSERT_ELEMENTS(x, 9, 2, 9, 4);
}
END_TEST

/* Division is division, not multiplication by a rounded reciprocal. */
START_TEST(division_rounds_once)
{
    SCOPE;
    struct tensor *x = tensor_from((float[]){5, 7, 11, 13, 1e-3f}, SHAPE(5));
    tensor_div_(x, 3);
    ASSERT_ELEMENTS(x, (double)(5 / 3.0f), (double)(7 / 3.0f), (double)(11 / 3.0f),
                    (double)(13 / 3.0f), (double)(1e-3f / 3.0f));
}
END_TEST

START_TEST(in_place_refuses)
{
    SCOPE;
    struct tensor *x = counting(2, 2);
    ASSERT_REFUSED(ValueError, !tensor_add_(x, counting(4, 1), 1));
    ASSERT_REFUSED(ValueError, !tensor_copy_(x, counting(1, 4)));
    ASSERT_REFUSED(TypeError, !tensor_add_(x, tensor_cast(x, FLOAT64), 1));
    ck_assert_ptr_null(tensor_add_(x, NULL, 1));
    ck_assert_ptr_null(tensor_copy_(NULL, x));
    ck_assert_ptr_null(tensor_mul_(NULL, 1));
    ck_assert_ptr_null(tensor_div_(NULL, 1));
    ck_assert_ptr_null(tensor_fill_(NULL, 1));
    ck_assert(!error_occurred());
    ASSERT_ELEMENTS(x, 0, 1, 2, 3);
}
END_TEST

/* ---- half precision ---- */

static const struct {
    double value;
    uint16_t half;
} halves[] = {
    {0, 0x0000},
    {-0.0, 0x8000},
    {1, 0x3c00},
    {-2, 0xc000},
    {65504, 0x7bff},
    {65519.999, 0x7bff},
    {65520, 0x7c00}, /* halfway to what would be 65536: even, so infinity */
    {-1e300, 0xfc00},
    {INFINITY, 0x7c00},
    {NAN, 0x7e00},
    {0x1p-14, 0x0400},
    {0x1p-14 - 0x1p-24, 0x03ff},
    {0x1p-14 - 0x1p-25, 0x0400}, /* rounds up out of the subnormals */
    {0x1p-24, 0x0001},
    {0x1p-25, 0x0000}, /* a tie, to even */
    {0x1.8p-25, 0x0001},
    {0x1.8p-24, 0x0002}, /* a tie, to even */
    {1e-300, 0x0000},
    {1 + 0x1p-11, 0x3c00},           /* a tie, to even */
    {1 + 0x3p-11, 0x3c02},           /* a tie, to even */
    {1 + 0x1p-11 + 0x1p-40, 0x3c01}, /* no tie, unless rounded to float on the way */
    {2 - 0x1p-11, 0x4000},           /* a tie that carries into the exponent */
};

START_TEST(half_is_rounded_to_nearest_even)
{
    SCOPE;
    struct tensor *half =
        tensor_cast(tensor_full(SHAPE(1), halves[_i].value, FLOAT64, CPU), FLOAT16);
    ck_assert_uint_eq(*(uint16_t *)tensor_data(half), halves[_i].half);
}
END_TEST

START_TEST(every_half_survives)
{
    SCOPE;
    struct tensor *half = tensor_zeros(SHAPE(1 << 16), FLOAT16, CPU);
    uint16_t *bits = tensor_data(half);
    for (int i = 0; i < 1 << 16; i++)
        bits[i] = (uint16_t)i;
    struct tensor *single = tensor_cast(half, FLOAT32), *twice = tensor_cast(half, FLOAT64);
    uint16_t *from_single = tensor_data(tensor_cast(single, FLOAT16));
    uint16_t *from_double = tensor_data(tensor_cast(twice, FLOAT16));
    for (int i = 0; i < 1 << 16; i++) {
        bool is_nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff);
        ck_assert_uint_eq(from_single[i], is_nan ? (i & 0x8000) | 0x7e00 : i);
        ck_assert_uint_eq(from_double[i], is_nan ? (i & 0x8000) | 0x7e00 : i);
        ck_assert(isnan(((float *)tensor_data(single))[i]) == is_nan);
    }
    ck_assert_double_eq(tensor_get(single, 0x3555), 0.333251953125);
    ck_assert_double_eq(tensor_get(single, 0x0001), 0x1p-24);
    ck_assert_double_eq(tensor_get(twice, 0xfc00), -INFINITY);
}
END_TEST

START_TEST(half_in_place_and_in_views)
{
    SCOPE;
    struct tensor *x = tensor_cast(counting(2, 3), FLOAT16);
    tensor_mul_(x, 2);
    tensor_add_(x, x, -0.25);
    ASSERT_ELEMENTS(tensor_transpose(x, 0, 1), 0, 4.5, 1.5, 6, 3, 7.5);
    ASSERT_ELEMENTS(tensor_cat(tensor_split(x, 1)), 0, 1.5, 3, 4.5, 6, 7.5);
    ASSERT_ELEMENTS(tensor_copy_(counting(2, 3), x), 0, 1.5, 3, 4.5, 6, 7.5);
}
END_TEST

/* ---- memory ---- */

START_TEST(retained_beyond_the_scope)
{
    struct tensor *kept;
    {
        SCOPE;
        kept = tensor_retain(tensor_slice(counting(300, 100), 0, 299, 1));
    }
    SCOPE;
    ck_assert_double_eq(tensor_get(kept, 0, 99), 29999);
    tensor_release(kept);
    tensor_release(NULL);
    ck_assert_ptr_null(tensor_retain(NULL));
}
END_TEST

START_TEST(memory_is_aligned_and_apart)
{
    SCOPE;
    enum { COUNT = 64 };
    struct tensor *x[COUNT];
    for (int round = 0; round < 3; round++) {
        SCOPE;
        for (int i = 0; i < COUNT; i++) {
            x[i] = tensor_full(SHAPE(1000 * (i + 1)), i, FLOAT32, CPU);
            ck_assert_uint_eq((uintptr_t)tensor_data(x[i]) % 64, 0);
        }
        for (int i = 0; i < COUNT; i++)
            ck_assert_double_eq(tensor_item(tensor_sum(x[i])), 1000.0 * (i + 1) * i);
    }
}
END_TEST

START_TEST(no_scope_is_an_error)
{
    ASSERT_REFUSED(RuntimeError, !tensor_zeros(SHAPE(2), FLOAT32, CPU));
}
END_TEST

static TCase *all_tests(void)
{
    TCase *tests = tcase_create("tensor");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, what_a_tensor_is);
    tcase_add_test(tests, names);
    tcase_add_test(tests, scalars_and_empty_tensors);
    tcase_add_test(tests, impossible_tensors_are_refused);
    tcase_add_test(tests, reading);
    tcase_add_test(tests, clone_is_apart);
    tcase_add_test(tests, in_place);
    tcase_add_test(tests, division_rounds_once);
    tcase_add_test(tests, in_place_refuses);
    tcase_add_loop_test(tests, half_is_rounded_to_nearest_even, 0,
                        (int)(sizeof halves / sizeof *halves));
    tcase_add_test(tests, every_half_survives);
    tcase_add_test(tests, half_in_place_and_in_views);
    tcase_add_test(tests, retained_beyond_the_scope);
    tcase_add_test(tests, memory_is_aligned_and_apart);
    tcase_add_test(tests, no_scope_is_an_error);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("tensor");
    suite_add_tcase(suite, all_tests());
    return suite_run(suite);
}

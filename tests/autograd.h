#ifndef TESTS_AUTOGRAD_H
#define TESTS_AUTOGRAD_H
/* autograd.h - what the tests of differentiation share. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/ops.h"

static inline struct tensor *vector(const double *values, int n)
{
    return tensor_from_doubles(values, SHAPE(n));
}
#define VECTOR(...)                                                                                \
    vector((const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))
#define LEAF(...) tensor_set_requires_grad(VECTOR(__VA_ARGS__), true)

static inline void assert_elements(const struct tensor *x, int n, const double *expected)
{
    double got[64];
    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(tensor_numel(x), n);
    ck_assert_int_eq(tensor_read(x, got), 0);
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol(got[i], expected[i], 1e-12);
}
#define ASSERT_ELEMENTS(x, ...)                                                                    \
    assert_elements((x), (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                  \
                    (const double[]){__VA_ARGS__})

/* assert_error - this error is pending, and says `part`; it is cleared */
static inline void assert_error(const struct error_type *type, const char *part)
{
    ck_assert_msg(error_is(type), "no %s", type->name);
    ck_assert_msg(strstr(error_message(error_pending()), part) != NULL,
                  "\"%s\" does not say \"%s\"", error_message(error_pending()), part);
    error_clear();
}

static inline void backward(struct tensor *x)
{
    int status = tensor_backward(x);
    ck_assert_msg(status == 0, "backward: %s",
                  error_occurred() ? error_message(error_pending()) : "no error");
}

/* wave - no two elements alike, FLOAT32 */
static inline struct tensor *wave(int64_t rows, int64_t columns, double phase)
{
    struct tensor *x = tensor_zeros(SHAPE(rows, columns), FLOAT32, CPU);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)tensor_data(x))[i] = (float)sin(phase + (double)i);
    return x;
}
#endif

#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H
/* golden.h - known values from tests/golden, and comparing with them. For Check programs. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/nn.h"
#include "runtime/ops.h"
#include "runtime/scope.h"

/* golden_load - tests/golden/NAME; ends the test if it is not there. owns: the caller */
static inline json_t *golden_load(const char *name)
{
    char path[256];
    json_error_t error;
    snprintf(path, sizeof path, "tests/golden/%s", name);
    json_t *json = json_load_file(path, 0, &error);
    ck_assert_msg(json != NULL, "%s: %s", path, error.text);
    return json;
}

static inline double *golden_flatten(const json_t *json, double *to)
{
    if (!json_is_array(json)) {
        *to = json_number_value(json);
        return to + 1;
    }
    for (size_t i = 0; i < json_array_size(json); i++)
        to = golden_flatten(json_array_get(json, i), to);
    return to;
}

static inline int golden_shape(const json_t *json, int64_t *shape)
{
    int ndim = 0;
    for (; json_is_array(json); json = json_array_get(json, 0))
        shape[ndim++] = (int64_t)json_array_size(json);
    return ndim;
}

/* golden_tensor - nested lists of numbers as a CPU tensor of a dtype */
static inline struct tensor *golden_tensor(const json_t *json, enum dtype dtype)
{
    int64_t shape[TENSOR_MAX_DIMS], numel = 1;
    ck_assert_ptr_nonnull(json);
    const int ndim = golden_shape(json, shape);
    for (int i = 0; i < ndim; i++)
        numel *= shape[i];
    double *values = scope_alloc((size_t)numel * sizeof *values);
    golden_flatten(json, values);
    struct tensor *tensor = tensor_cast(tensor_from_doubles(values, ndim, shape), dtype);
    ck_assert_ptr_nonnull(tensor);
    return tensor;
}

/* check_close - shape, and every element within atol + rtol * |expected| */
static inline void check_close(const struct tensor *got, const struct tensor *expected, double rtol,
                               double atol, const char *what)
{
    ck_assert_msg(got != NULL, "%s: there is none", what);
    ck_assert_msg(tensor_same_shape(got, expected), "%s: shape %s, expected %s", what,
                  tensor_shape_name(got), tensor_shape_name(expected));
    const int64_t n = tensor_numel(got);
    double *a = scope_alloc((size_t)n * sizeof *a), *b = scope_alloc((size_t)n * sizeof *b);
    ck_assert_int_eq(tensor_read(got, a), 0);
    ck_assert_int_eq(tensor_read(expected, b), 0);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(a[i] - b[i]) <= atol + rtol * fabs(b[i]),
                      "%s[%lld]: %.9g, expected %.9g", what, (long long)i, a[i], b[i]);
}

/* check_golden - check_close against nested lists */
static inline void check_golden(const struct tensor *got, const json_t *expected, double rtol,
                                double atol, const char *what)
{
    check_close(got, golden_tensor(expected, FLOAT64), rtol, atol, what);
}

/* check_raised - the pending error has this type, and is cleared */
static inline void check_raised(const struct error_type *type, const char *what)
{
    ck_assert_msg(error_occurred(), "%s: no error", what);
    ck_assert_msg(error_is(type), "%s: %s instead of %s: %s", what,
                  error_type_of(error_pending())->name, type->name, error_message(error_pending()));
    error_clear();
}

/* check_no_error - and show the one that is pending */
static inline void check_no_error(void)
{
    ck_assert_msg(!error_occurred(), "%s at %s:%d",
                  error_occurred() ? error_message(error_pending()) : "",
                  error_occurred() ? error_file(error_pending()) : "",
                  error_occurred() ? error_line(error_pending()) : 0);
}
#endif

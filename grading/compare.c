#include "grading/compare.h"

#include <math.h>
#include <stdio.h>

#include "runtime/error.h"
#include "runtime/scope.h"

bool number_close(double got, double expected, double rtol, double atol)
{
    if (got == expected)
        return true;
    double difference = fabs(got - expected);
    return isfinite(expected) && difference <= atol + rtol * fabs(expected);
}

/* What a pass over all elements finds. */
struct comparison {
    int64_t numel, differing;
    int64_t worst; /* where the largest difference is; a NaN is larger than any number */
    double largest;
};

static double distance(double got, double expected)
{
    double difference = fabs(got - expected);
    return isnan(difference) ? INFINITY : difference;
}

static struct comparison compare(const double *got, const double *expected, int64_t numel,
                                 double rtol, double atol)
{
    struct comparison c = {.numel = numel, .largest = -1};
    for (int64_t i = 0; i < numel; i++) {
        if (number_close(got[i], expected[i], rtol, atol))
            continue;
        c.differing++;
        if (distance(got[i], expected[i]) > c.largest) {
            c.largest = distance(got[i], expected[i]);
            c.worst = i;
        }
    }
    return c;
}

/* position_name - "(1, 3)": the position of the i-th element */
static const char *position_name(const struct tensor *x, int64_t i)
{
    int64_t position[TENSOR_MAX_DIMS];
    for (int d = tensor_ndim(x) - 1; d >= 0; d--) {
        position[d] = i % tensor_size(x, d);
        i /= tensor_size(x, d);
    }
    const char *name = "";
    for (int d = 0; d < tensor_ndim(x); d++)
        name = scope_printf("%s%s%jd", name, d ? ", " : "", (intmax_t)position[d]);
    return scope_printf("(%s)", name);
}

/* common_factor - if got is the same multiple of expected everywhere (the sum instead of the mean,
 * a sign, a forgotten scale), say so: it names the mistake better than any element
 * returns: text to append, maybe empty */
static const char *common_factor(const double *got, const double *expected, int64_t numel)
{
    int64_t at = 0, nonzero = 0;
    for (int64_t i = 0; i < numel; i++) {
        nonzero += expected[i] != 0;
        if (fabs(expected[i]) > fabs(expected[at]))
            at = i;
    }
    double factor = nonzero >= 2 ? got[at] / expected[at] : NAN;
    if (!isfinite(factor) || fabs(factor - 1) < 1e-2)
        return "";
    for (int64_t i = 0; i < numel; i++)
        if (!number_close(got[i], factor * expected[i], 1e-3, 1e-4 * fabs(got[at])))
            return "";
    return factor == 0 ? "; every element is 0"
                       : scope_printf("; every element is %.4g times the expected one", factor);
}

static const char *in_words(const struct comparison *c, const struct tensor *x, const double *got,
                            const double *expected, double rtol, double atol)
{
    const char *tolerance = rtol == 0 && atol == 0
                                ? "none is allowed"
                                : scope_printf("allowed: %g + %g * |expected|", atol, rtol);
    return scope_printf(
        "%jd of %jd elements differ (%.1f%%); the largest difference is %.4g at %s: "
        "got %.9g, expected %.9g (%s)%s",
        (intmax_t)c->differing, (intmax_t)c->numel, 100.0 * (double)c->differing / (double)c->numel,
        fabs(got[c->worst] - expected[c->worst]), position_name(x, c->worst), got[c->worst],
        expected[c->worst], tolerance, common_factor(got, expected, c->numel));
}

const char *tensor_difference(const struct tensor *got, const struct tensor *expected, double rtol,
                              double atol)
{
    if (!tensor_same_shape(got, expected))
        return scope_printf("shape is %s, expected %s", tensor_shape_name(got),
                            tensor_shape_name(expected));
    if (tensor_dtype(got) != tensor_dtype(expected))
        return scope_printf("dtype is %s, expected %s", dtype_name(tensor_dtype(got)),
                            dtype_name(tensor_dtype(expected)));
    int64_t numel = tensor_numel(expected);
    double *values = scope_alloc((size_t)numel * sizeof(double));
    double *wanted = scope_alloc((size_t)numel * sizeof(double));
    if (!values || !wanted || tensor_read(got, values) < 0 || tensor_read(expected, wanted) < 0) {
        error_clear();
        return "could not be compared: out of memory";
    }
    struct comparison c = compare(values, wanted, numel, rtol, atol);
    return c.differing == 0 ? NULL : in_words(&c, expected, values, wanted, rtol, atol);
}

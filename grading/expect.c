#include <stdlib.h>
#include <string.h>

#include "grading/compare.h"
#include "grading/fault.h"
#include "grading/judge.h"
#include "grading/observations.h"

bool judge_fail(struct judge *j, const char *reason, ...)
{
    if (j->reason)
        return false;
    va_list arguments;
    va_start(arguments, reason);
    char *text = vformat_or_fault(reason, arguments);
    va_end(arguments);
    j->reason = clean_or_fault(text); /* some of it may be a student's */
    free(text);
    return false;
}

/* ---- whom and what a message is about ---- */

struct subject_matter {
    const char *who; /* "rank 1 of 2: " or "" */
    char *what;
};

static void subject_matter_free(struct subject_matter *about)
{
    free(about->what);
}

static struct subject_matter about(const struct observations *o, const char *what,
                                   va_list arguments)
{
    int world_size = observations_world_size(o);
    return (struct subject_matter){
        .who =
            world_size > 1 ? scope_printf("rank %d of %d: ", observations_rank(o), world_size) : "",
        .what = vformat_or_fault(what, arguments),
    };
}

/* ABOUT - `text` from the variable arguments after the parameter `what`; freed with its block */
#define ABOUT(text)                                                                                \
    SCOPE;                                                                                         \
    va_list arguments_of_##text;                                                                   \
    va_start(arguments_of_##text, what);                                                           \
    __attribute__((cleanup(subject_matter_free))) struct subject_matter text =                     \
        about(o, what, arguments_of_##text);                                                       \
    va_end(arguments_of_##text)

/* fail - the criterion fails: WHO: WHAT FORMAT... */
#define fail(j, a, format, ...) judge_fail((j), "%s%s " format, (a).who, (a).what, ##__VA_ARGS__)

static bool fail_absent(struct judge *j, const struct subject_matter *a)
{
    return fail(j, *a, "was not observed: the run ended before it");
}

/* ---- tensors ---- */

static bool expect_difference(struct judge *j, const struct observations *o, const char *key,
                              const struct tensor *expected, double rtol, double atol,
                              const struct subject_matter *a)
{
    enum observation_kind kind = observed_kind(o, key);
    if (kind != OBSERVATION_TENSOR && kind != OBSERVATION_ABSENT)
        return fail_absent(j, a);
    if (kind == OBSERVATION_ABSENT)
        return !expected || fail(j, *a, "is absent, expected %s of shape %s",
                                 dtype_name(tensor_dtype(expected)), tensor_shape_name(expected));
    const struct tensor *got = observed_tensor(o, key);
    if (!expected)
        return fail(j, *a, "has shape %s, expected none", tensor_shape_name(got));
    const char *difference = tensor_difference(got, expected, rtol, atol);
    return !difference || fail(j, *a, "is wrong: %s", difference);
}

bool expect_close(struct judge *j, const struct observations *o, const char *key,
                  const struct tensor *expected, double rtol, double atol, const char *what, ...)
{
    ABOUT(a);
    return expect_difference(j, o, key, expected, rtol, atol, &a);
}

bool expect_equal(struct judge *j, const struct observations *o, const char *key,
                  const struct tensor *expected, const char *what, ...)
{
    ABOUT(a);
    return expect_difference(j, o, key, expected, 0, 0, &a);
}

bool expect_tensor(struct judge *j, const struct tensor *got, const struct tensor *expected,
                   double rtol, double atol, const char *what, ...)
{
    SCOPE;
    const char *difference = tensor_difference(got, expected, rtol, atol);
    if (!difference)
        return true;
    va_list arguments;
    va_start(arguments, what);
    char *about = vformat_or_fault(what, arguments);
    va_end(arguments);
    judge_fail(j, "%s is wrong: %s", about, difference);
    free(about);
    return false;
}

/* ---- numbers ---- */

bool expect_int(struct judge *j, const struct observations *o, const char *key, int64_t expected,
                const char *what, ...)
{
    ABOUT(a);
    if (observed_kind(o, key) != OBSERVATION_INT)
        return fail_absent(j, &a);
    int64_t got = observed_int(o, key, expected);
    return got == expected || fail(j, a, "is %jd, expected %jd", (intmax_t)got, (intmax_t)expected);
}

bool expect_true(struct judge *j, const struct observations *o, const char *key, const char *what,
                 ...)
{
    ABOUT(a);
    if (observed_kind(o, key) != OBSERVATION_INT)
        return fail(j, a, "(this was not observed: the run ended before it)");
    return observed_int(o, key, 0) != 0 || judge_fail(j, "%s%s", a.who, a.what);
}

enum { SHOWN = 12 };

/* ints_name - "[0, 1, 2, ... 90 more]" */
static const char *ints_name(const int64_t *values, int64_t n)
{
    const char *name = "";
    for (int64_t i = 0; i < n && i < SHOWN; i++)
        name = scope_printf("%s%s%jd", name, i ? ", " : "", (intmax_t)values[i]);
    return n > SHOWN ? scope_printf("[%s, ... %jd more]", name, (intmax_t)(n - SHOWN))
                     : scope_printf("[%s]", name);
}

bool expect_ints(struct judge *j, const struct observations *o, const char *key,
                 const int64_t *expected, int64_t n, const char *what, ...)
{
    ABOUT(a);
    if (observed_kind(o, key) != OBSERVATION_INTS)
        return fail_absent(j, &a);
    int64_t count, at = 0;
    const int64_t *got = observed_ints(o, key, &count);
    while (at < n && at < count && got[at] == expected[at])
        at++;
    if (at == n && at == count)
        return true;
    return fail(j, a, "is %s, expected %s%s", ints_name(got, count), ints_name(expected, n),
                at >= SHOWN ? scope_printf(" (they part at position %jd)", (intmax_t)at) : "");
}

bool expect_number(struct judge *j, const struct observations *o, const char *key, double expected,
                   double rtol, double atol, const char *what, ...)
{
    ABOUT(a);
    if (observed_kind(o, key) != OBSERVATION_NUMBER)
        return fail_absent(j, &a);
    double got = observed_number(o, key, expected);
    return number_close(got, expected, rtol, atol) ||
           fail(j, a, "is %.9g, expected %.9g (allowed: %g + %g * |expected|)", got, expected, atol,
                rtol);
}

/* ---- errors ---- */

static const char *a_or_an(const char *word)
{
    return *word && strchr("AEIOUaeiou", *word) ? "an" : "a";
}

bool expect_raised(struct judge *j, const struct observations *o, const char *key, const char *type,
                   const char *message, const char *what, ...)
{
    ABOUT(a);
    const char *got_type, *got_message;
    if (!observed_error(o, key, &got_type, &got_message))
        return fail_absent(j, &a);
    const char *wanted = type ? type : "error";
    if (!*got_type)
        return fail(j, a, "should have raised %s %s, but raised nothing", a_or_an(wanted), wanted);
    if (type && strcmp(got_type, type) != 0)
        return fail(j, a, "should have raised %s %s, but raised %s: %s", a_or_an(wanted), wanted,
                    got_type, got_message);
    return !message || strcmp(got_message, message) == 0 ||
           fail(j, a, "raised %s with the message \"%s\", expected \"%s\"", got_type, got_message,
                message);
}

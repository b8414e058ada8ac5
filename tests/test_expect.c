/* expect_* accept what is right, and say of what is wrong where, by how much, and what was
 * expected. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/judge.h"
#include "grading/observations.h"
#include "runtime/ops.h"
#include "tests/suite.h"

static FILE *file;
static struct subject subject;
static struct judge judge;
static struct observations *o;

static void begin(void)
{
    file = tmpfile();
    subject = (struct subject){.observations = fileno(file), .pid = getpid()};
    judge = (struct judge){0};
    o = NULL;
}

static void end(void)
{
    fclose(file);
    free(judge.reason);
    observations_free(o);
}

/* What was observed so far, as of rank 1 of so many. */
static void decode(int world_size)
{
    SCOPE;
    off_t size = lseek(fileno(file), 0, SEEK_END);
    char *bytes = scope_alloc((size_t)size);
    ck_assert_int_eq(pread(fileno(file), bytes, (size_t)size, 0), size);
    o = observations_decode(bytes, (size_t)size, world_size > 1, world_size);
    ck_assert_ptr_nonnull(o);
}

/* The reason given, which is then forgotten. */
static void check_reason(const char *reason)
{
    ck_assert_ptr_nonnull(judge.reason);
    ck_assert_str_eq(judge.reason, reason);
    free(judge.reason);
    judge.reason = NULL;
}

static struct tensor *row(float a, float b, float c)
{
    return tensor_from((float[]){a, b, c}, SHAPE(3));
}

START_TEST(test_first_reason_counts)
{
    ck_assert(!judge_fail(&judge, "first %d", 1));
    ck_assert(!judge_fail(&judge, "second"));
    check_reason("first 1");
    (void)judge_fail(&judge, "a \x1b[31mred\xff");
    check_reason("a red\xef\xbf\xbd");
}
END_TEST

START_TEST(test_close)
{
    SCOPE;
    observe_tensor(&subject, row(1, -2, 0), "x");
    decode(1);
    ck_assert(expect_close(&judge, o, "x", row(1, -2, 0), 0, 0, "x"));
    ck_assert(expect_close(&judge, o, "x", row(1.01F, -2, 0), 0.011, 0, "x"));
    ck_assert(expect_close(&judge, o, "x", row(1, -2, 0.01F), 0, 0.011, "x"));
    ck_assert(expect_equal(&judge, o, "x", row(1, -2, -0.0F), "x"));
    ck_assert_ptr_null(judge.reason);
    ck_assert(!expect_close(&judge, o, "x", row(1, -2, 0.01F), 0.05, 0.009, "the output"));
    check_reason("the output is wrong: 1 of 3 elements differ (33.3%); the largest difference is "
                 "0.01 at (2): got 0, expected 0.00999999978 (allowed: 0.009 + 0.05 * |expected|)");
    ck_assert(!expect_equal(&judge, o, "x", row(1, -2.5F, 0.25F), "row %d", 4));
    check_reason("row 4 is wrong: 2 of 3 elements differ (66.7%); the largest difference is 0.5 at "
                 "(1): got -2, expected -2.5 (none is allowed)");
}
END_TEST

START_TEST(test_rank_is_named)
{
    SCOPE;
    observe_int(&subject, 3, "n");
    decode(4);
    ck_assert(expect_int(&judge, o, "n", 3, "the count"));
    ck_assert(!expect_int(&judge, o, "n", 4, "the count"));
    check_reason("rank 1 of 4: the count is 3, expected 4");
    ck_assert(!expect_int(&judge, o, "m", 4, "the count"));
    check_reason("rank 1 of 4: the count was not observed: the run ended before it");
}
END_TEST

/* A wrong factor is named, if it is one. */
START_TEST(test_factors)
{
    SCOPE;
    observe_tensor(&subject, row(2, -4, 6), "double");
    observe_tensor(&subject, row(0, 0, 0), "zero");
    observe_tensor(&subject, row(2, -4, 5), "mixed");
    decode(1);
    ck_assert(!expect_close(&judge, o, "double", row(1, -2, 3), 0.1, 0, "x"));
    ck_assert_ptr_nonnull(strstr(judge.reason, "; every element is 2 times the expected one"));
    free(judge.reason);
    judge.reason = NULL;
    ck_assert(!expect_close(&judge, o, "zero", row(1, -2, 3), 0.1, 0, "x"));
    ck_assert_ptr_nonnull(strstr(judge.reason, "; every element is 0"));
    free(judge.reason);
    judge.reason = NULL;
    ck_assert(!expect_close(&judge, o, "mixed", row(1, -2, 3), 0.1, 0, "x"));
    ck_assert_ptr_null(strstr(judge.reason, "every element"));
}
END_TEST

START_TEST(test_not_a_number)
{
    SCOPE;
    observe_tensor(&subject, row(NAN, INFINITY, -INFINITY), "x");
    observe_number(&subject, NAN, "n");
    decode(1);
    ck_assert(!expect_close(&judge, o, "x", row(NAN, INFINITY, -INFINITY), 1, 1e9, "x"));
    check_reason(
        "x is wrong: 1 of 3 elements differ (33.3%); the largest difference is nan at (0): "
        "got nan, expected nan (allowed: 1e+09 + 1 * |expected|)");
    ck_assert(!expect_close(&judge, o, "x", row(0, INFINITY, -INFINITY), 1, 1e9, "x"));
    free(judge.reason);
    judge.reason = NULL;
    ck_assert(!expect_close(&judge, o, "x", row(0, 0, 0), 1, 1e9, "x"));
    ck_assert_ptr_nonnull(strstr(judge.reason, "3 of 3 elements differ"));
    free(judge.reason);
    judge.reason = NULL;
    ck_assert(!expect_number(&judge, o, "n", NAN, 1, 1, "x"));
}
END_TEST

START_TEST(test_shape_dtype_absence)
{
    SCOPE;
    observe_tensor(&subject, tensor_zeros(SHAPE(2, 3), FLOAT32, CPU), "x");
    observe_tensor(&subject, NULL, "none");
    decode(1);
    ck_assert(!expect_close(&judge, o, "x", tensor_zeros(SHAPE(3, 2), FLOAT32, CPU), 1, 1, "x"));
    check_reason("x is wrong: shape is (2, 3), expected (3, 2)");
    ck_assert(!expect_close(&judge, o, "x", tensor_zeros(SHAPE(2, 3), FLOAT64, CPU), 1, 1, "x"));
    check_reason("x is wrong: dtype is float32, expected float64");
    ck_assert(expect_close(&judge, o, "none", NULL, 0, 0, "x"));
    ck_assert(!expect_close(&judge, o, "x", NULL, 0, 0, "x"));
    check_reason("x has shape (2, 3), expected none");
    ck_assert(!expect_close(&judge, o, "none", row(1, 2, 3), 0, 0, "x"));
    check_reason("x is absent, expected float32 of shape (3)");
    ck_assert(!expect_close(&judge, o, "never", NULL, 0, 0, "x"));
    check_reason("x was not observed: the run ended before it");
    ck_assert(!expect_tensor(&judge, row(1, 2, 3), row(1, 2, 4), 0, 0, "file %d", 1));
    check_reason("file 1 is wrong: 1 of 3 elements differ (33.3%); the largest difference is 1 at "
                 "(2): got 3, expected 4 (none is allowed)");
}
END_TEST

START_TEST(test_lists_numbers_truth)
{
    static const int64_t right[] = {1, 2, 3}, long_list[20] = {0};
    observe_ints(&subject, right, 3, "list");
    observe_ints(&subject, long_list, 20, "long");
    observe_number(&subject, 2.5, "number");
    observe_int(&subject, 0, "false");
    observe_int(&subject, 1, "true");
    decode(1);
    ck_assert(expect_ints(&judge, o, "list", right, 3, "sizes"));
    ck_assert(!expect_ints(&judge, o, "list", right, 2, "sizes"));
    check_reason("sizes is [1, 2, 3], expected [1, 2]");
    ck_assert(!expect_ints(&judge, o, "long", long_list, 19, "sizes"));
    check_reason("sizes is [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ... 8 more], expected [0, 0, 0, 0, "
                 "0, 0, 0, 0, 0, 0, 0, 0, ... 7 more] (they part at position 19)");
    ck_assert(expect_number(&judge, o, "number", 2.4, 0, 0.2, "loss"));
    ck_assert(!expect_number(&judge, o, "number", 2, 0, 0.2, "loss"));
    check_reason("loss is 2.5, expected 2 (allowed: 0.2 + 0 * |expected|)");
    ck_assert(expect_true(&judge, o, "true", "it is not so"));
    ck_assert(!expect_true(&judge, o, "false", "it is not so"));
    check_reason("it is not so");
    ck_assert(!expect_true(&judge, o, "nowhere", "it is not so"));
    check_reason("it is not so (this was not observed: the run ended before it)");
}
END_TEST

START_TEST(test_errors)
{
    (void)raise_error(ValueError, "size -1");
    observe_error(&subject, "error");
    observe_error(&subject, "none");
    decode(1);
    ck_assert(expect_raised(&judge, o, "error", "ValueError", NULL, "f(-1)"));
    ck_assert(expect_raised(&judge, o, "error", "ValueError", "size -1", "f(-1)"));
    ck_assert(expect_raised(&judge, o, "error", NULL, NULL, "f(-1)"));
    ck_assert(!expect_raised(&judge, o, "error", "OSError", NULL, "f(-1)"));
    check_reason("f(-1) should have raised an OSError, but raised ValueError: size -1");
    ck_assert(!expect_raised(&judge, o, "error", "ValueError", "size", "f(-1)"));
    check_reason("f(-1) raised ValueError with the message \"size -1\", expected \"size\"");
    ck_assert(!expect_raised(&judge, o, "none", "ValueError", NULL, "f(-1)"));
    check_reason("f(-1) should have raised a ValueError, but raised nothing");
    ck_assert(!expect_raised(&judge, o, "none", NULL, NULL, "f(-1)"));
    check_reason("f(-1) should have raised an error, but raised nothing");
}
END_TEST

static Suite *expect_suite(void)
{
    Suite *suite = suite_create("expect");
    TCase *tests = tcase_create("expect");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, test_first_reason_counts);
    tcase_add_test(tests, test_close);
    tcase_add_test(tests, test_rank_is_named);
    tcase_add_test(tests, test_factors);
    tcase_add_test(tests, test_not_a_number);
    tcase_add_test(tests, test_shape_dtype_absence);
    tcase_add_test(tests, test_lists_numbers_truth);
    tcase_add_test(tests, test_errors);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return suite_run(expect_suite());
}

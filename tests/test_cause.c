/* Diagnosis: which of several hypotheses is named, and how; and the drawing of a pipeline's trace.
 * That the causes named are right ones is for the bank of submissions (tests/bank) to show. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "criteria/cause.h"
#include "criteria/forward_calls.h"
#include "grading/judge.h"
#include "grading/rubric.h"
#include "tests/suite.h"

/* ---- hypotheses ---- */

static bool yes(struct judge *j, const void *with)
{
    (void)j, (void)with;
    return true;
}

static bool no(struct judge *j, const void *with)
{
    (void)with;
    return judge_fail(j, "a hypothesis fails");
}

static bool yes_but_raises(struct judge *j, const void *with)
{
    (void)j, (void)with;
    error_set(&ValueError, __FILE__, __LINE__, "shapes differ");
    return true;
}

static bool is_seven(struct judge *j, const void *with)
{
    (void)j;
    return *(const int *)with == 7;
}

#define SEVEN                                                                                      \
    &(const int)                                                                                   \
    {                                                                                              \
        7                                                                                          \
    }
static const struct diagnosis_case {
    const char *cause; /* NULL: none is named */
    struct hypothesis causes[6];
} diagnosis_cases[] = {
    {"likely cause: a", {{"a", yes, NULL, false}}},
    {"likely cause: b", {{"a", no, NULL, false}, {"b", yes, NULL, false}, {"c", no, NULL, true}}},
    {"likely cause: a", {{"a", yes, NULL, false}, {"b", yes, NULL, true}}},
    {"likely cause: b", {{"a", yes_but_raises, NULL, false}, {"b", is_seven, SEVEN, false}}},
    {"perhaps: a; or b", {{"a", yes, NULL, false}, {"b", yes, NULL, false}}},
    {"perhaps: b", {{"a", no, NULL, false}, {"b", yes, NULL, true}}},
    {"perhaps: a; or b; or c",
     {{"a", yes, NULL, true}, {"b", yes, NULL, true}, {"c", yes, NULL, true}}},
    {NULL,
     {{"a", yes, NULL, false},
      {"b", yes, NULL, false},
      {"c", yes, NULL, false},
      {"d", yes, NULL, false}}},
    {NULL, {{"a", no, NULL, false}}},
    {NULL, {{"a", yes_but_raises, NULL, false}}},
};

START_TEST(test_diagnosis)
{
    SCOPE;
    const struct diagnosis_case *c = &diagnosis_cases[_i];
    struct criterion criterion = {.id = "test", .causes = c->causes};
    struct judge j = {.criterion = &criterion, .reason = strdup("it is wrong")};
    judge_diagnose(&j);
    if (c->cause)
        ck_assert_str_eq(j.cause, c->cause);
    else
        ck_assert_ptr_null(j.cause);
    ck_assert_str_eq(j.reason, "it is wrong");
    ck_assert(!error_occurred());
    free(j.cause);
    free(j.reason);
}
END_TEST

/* What the reason alone tells, and where no hypothesis is needed. */
static const struct {
    const char *reason, *cause; /* part of it; NULL: none is named */
} reason_cases[] = {
    {"it is wrong", "likely cause: a"},
    {"f(2) raised NotImplementedError: f is not implemented yet", NULL},
    {"f(2) gives the index -289360691352306693, outside 0 .. 1", "allocated but not written"},
    {"f(2) gives the index -4702111234474983746, outside 0 .. 1", "allocated but not written"},
    {"f(2) gives the index -144680345676153347, outside 0 .. 1", "freed already"},
    {"crashed: SIGSEGV (address 0x8, in the memory of cuda:1)", "the host reads or writes"},
    {"student code freed twice a block of 8 bytes, allocated in a call made at a.c:1",
     "is passed to free"},
    {"student code freed twice a block of 8 bytes, allocated at a.c:1", "likely cause: a"},
};

START_TEST(test_reasons)
{
    SCOPE;
    const struct hypothesis causes[] = {{"a", yes, NULL, false}, {NULL, NULL, NULL, false}};
    struct criterion criterion = {.id = "test", .causes = causes};
    struct judge j = {.criterion = &criterion, .reason = (char *)reason_cases[_i].reason};
    judge_diagnose(&j);
    if (reason_cases[_i].cause)
        ck_assert_ptr_nonnull(strstr(j.cause ? j.cause : "", reason_cases[_i].cause));
    else
        ck_assert_ptr_null(j.cause);
    free(j.cause);
}
END_TEST

START_TEST(test_diagnosis_without_hypotheses)
{
    SCOPE;
    struct criterion criterion = {.id = "test"};
    struct judge j = {.criterion = &criterion, .reason = (char *)"it is wrong"};
    judge_diagnose(&j);
    ck_assert_ptr_null(j.cause);
}
END_TEST

/* Every table in the rubric can be gone through: sentences that say something, each with its test.
 */
START_TEST(test_rubric)
{
    const struct criterion *const *all;
    int count = rubric_all(&all), hypotheses = 0;
    for (int i = 0; i < count; i++)
        for (const struct hypothesis *h = all[i]->causes; h && h->sentence; h++, hypotheses++) {
            ck_assert_msg(h->holds != NULL, "%s: %s", all[i]->id, h->sentence);
            ck_assert_msg(strlen(h->sentence) > 20, "%s: %s", all[i]->id, h->sentence);
        }
    ck_assert_int_ge(hypotheses, 60);
}
END_TEST

START_TEST(test_said)
{
    struct judge j = {.reason = (char *)"rank 12 of 16: f raised ValueError: g raised"};
    ck_assert(cause_said(&j, "f raised ValueError"));
    ck_assert(!cause_said(&j, "g raised"));
    ck_assert(!cause_said(&j, "rank 12"));
    j.reason = (char *)"f raised ValueError";
    ck_assert(cause_said(&j, "f raised ValueError"));
    ck_assert(!cause_said(&j, "f raised ValueError: "));
}
END_TEST

/* ---- traces ---- */

#define R TRACE_RECEIVED
static const struct trace_case {
    enum trace_order order;
    int64_t n, steps[8];
} trace_cases[] = {
    /* two microbatches, two stages: waves (0), (0, 1), (1) */
    {TRACE_BY_WAVE, 8, {0, R, 0, 1, R, R + 1, 1, R + 1}},
    {TRACE_BY_PAIR, 8, {0, R, 0, R, 1, R + 1, 1, R + 1}},
    {TRACE_ALL_AT_ONCE, 8, {0, 0, 1, 1, R, R, R + 1, R + 1}},
    {TRACE_REVERSE_RECEIVES, 8, {0, R, 0, 1, R + 1, R, 1, R + 1}},
    {TRACE_FIRST_WORKER, 8, {0, R, 0, 0, R, R, 0, R}},
};

START_TEST(test_trace)
{
    SCOPE;
    const struct trace_case *c = &trace_cases[_i];
    int64_t n;
    const int64_t *steps = trace_made(2, 2, c->order, &n);
    ck_assert(trace_same(steps, n, c->steps, c->n));
}
END_TEST

static const struct diagram_case {
    int64_t got_n;
    const char *expected, *yours, *mark; /* the mark, and what is above it in `yours` */
} diagram_cases[] = {
    {8, "S0 R0 | S0 S1 R0 R1 | S1 R1 (end)", "S0 R0 | S0 R0 | S1 R1 | S1 R1 (end)", "R0 | S1 R1 |"},
    {3, "S0 R0 | S0 S1 R0 R1 | S1 R1 (end)", "S0 R0 | S0 (end)", "(end)"},
    {0, "S0 R0 | S0 S1 R0 R1 | S1 R1 (end)", "(end)", "(end)"},
};

/* column_of - where in a line of the diagram, that begins with `line`, the text is; or -1 */
static long column_of(const char *diagram, const char *line, const char *text)
{
    const char *begin = strstr(diagram, line), *at = begin ? strstr(begin, text) : NULL;
    return at ? at - begin : -1;
}

START_TEST(test_diagram)
{
    SCOPE;
    const struct diagram_case *c = &diagram_cases[_i];
    int64_t n, right_n;
    const int64_t *right = trace_made(2, 2, TRACE_BY_WAVE, &right_n);
    const int64_t *got = trace_made(2, 2, TRACE_BY_PAIR, &n);
    const char *diagram = trace_diagram(got, c->got_n, right, right_n);
    ck_assert_ptr_nonnull(strstr(diagram, scope_printf("  expected  %s\n", c->expected)));
    ck_assert_ptr_nonnull(strstr(diagram, scope_printf("  yours     %s\n", c->yours)));
    const char *last = strrchr(diagram, '\n') + 1;
    long mark = strchr(last, '^') - last;
    ck_assert_int_eq(mark, column_of(diagram, "  yours", c->mark));
}
END_TEST

/* A long trace is cut around where it parts. */
START_TEST(test_diagram_is_cut)
{
    SCOPE;
    int64_t n;
    int64_t *right = trace_made(3, 40, TRACE_BY_WAVE, &n), got[6 * 40];
    memcpy(got, right, (size_t)n * sizeof *got);
    got[120] = 77;
    const char *diagram = trace_diagram(got, n, right, n);
    ck_assert_ptr_nonnull(strstr(diagram, "expected  ... S"));
    ck_assert_ptr_nonnull(strstr(diagram, " ...\n"));
    ck_assert_ptr_nonnull(strstr(diagram, "S77"));
    ck_assert_uint_lt(strlen(diagram), 400);
    const char *last = strrchr(diagram, '\n') + 1;
    ck_assert_int_eq(strchr(last, '^') - last, column_of(diagram, "  yours", "S77"));
}
END_TEST

static Suite *cause_suite(void)
{
    Suite *suite = suite_create("cause");
    TCase *tests = tcase_create("cause");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_diagnosis, 0, sizeof diagnosis_cases / sizeof *diagnosis_cases);
    tcase_add_loop_test(tests, test_reasons, 0, sizeof reason_cases / sizeof *reason_cases);
    tcase_add_test(tests, test_diagnosis_without_hypotheses);
    tcase_add_test(tests, test_rubric);
    tcase_add_test(tests, test_said);
    tcase_add_loop_test(tests, test_trace, 0, sizeof trace_cases / sizeof *trace_cases);
    tcase_add_loop_test(tests, test_diagram, 0, sizeof diagram_cases / sizeof *diagram_cases);
    tcase_add_test(tests, test_diagram_is_cut);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return suite_run(cause_suite());
}

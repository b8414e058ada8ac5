/* test_summary.c - the score, and what a person sees of a run */
#include "grading/summary.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "grading/score.h"
#include "tests/folder.h"
#include "tests/results.h"
#include "tests/suite.h"

/* ---- the score ---- */

static const struct {
    enum status statuses[RESULTS];
    int earned, blocked_points, exit_status;
} scores[] = {
    {{STATUS_PASSED, STATUS_PASSED, STATUS_PASSED, STATUS_PASSED}, 33, 0, 0},
    {{STATUS_PASSED, STATUS_PASSED, STATUS_BLOCKED, STATUS_PASSED}, 19, 14, 2},
    {{STATUS_FAILED, STATUS_PASSED, STATUS_BLOCKED, STATUS_PASSED}, 12, 14, 1},
    {{STATUS_PASSED, STATUS_TIMEOUT, STATUS_PASSED, STATUS_PASSED}, 26, 0, 1},
    {{STATUS_BLOCKED, STATUS_BLOCKED, STATUS_BLOCKED, STATUS_BLOCKED}, 0, 33, 2},
    {{STATUS_FAILED, STATUS_FAILED, STATUS_FAILED, STATUS_FAILED}, 0, 0, 1},
};

START_TEST(test_score)
{
    for (int i = 0; i < RESULTS; i++)
        results[i].status = scores[_i].statuses[i];
    struct score score = score_of(&run);
    ck_assert_int_eq(score.earned, scores[_i].earned);
    ck_assert_int_eq(score.possible, 33);
    ck_assert_int_eq(score.blocked_points, scores[_i].blocked_points);
    ck_assert_int_eq(score_status(&score), scores[_i].exit_status);
}
END_TEST

/* ---- what a person sees ---- */

static const struct {
    const char *color;
    bool quiet;
    const char *printed;
} summaries[] = {
    {"never", false,
     "  1.1  partitions      passed    7/7      0.12 s\n"
     "  1.2  gradients       failed    0/7      0.00 s\n"
     "       off by 2\n"
     "         got 1\n"
     "  1.4  dp_performance  blocked   0/14  needs two V100 GPUs\n"
     "\n7/33  (14 blocked)\nreport: r.json\n"},
    {"never", true, "7/33  (14 blocked)\n"},
    {"always", true, "\x1B[1m7/33\x1B[0m  (14 blocked)\n"},
    {"auto", true, "7/33  (14 blocked)\n"}, /* a file is no terminal */
};

START_TEST(test_summary)
{
    char *printed;
    size_t n;
    FILE *out = _i == 3 ? fopen("out", "w+") : open_memstream(&printed, &n);
    struct summary summary;
    results[0].status = STATUS_PASSED;
    results[0].seconds = 0.12345;
    results[1].status = STATUS_FAILED;
    results[1].reason = (char *)"off by 2\n  got \x1B[5m1\n";
    summary_begin(&summary, out, summaries[_i].color, summaries[_i].quiet, &run);
    for (int i = 0; i < 3; i++)
        summary_result(&summary, &results[i]);
    summary_end(&summary, &run, "r.json");
    if (_i == 3) {
        rewind(out);
        printed = calloc(1, 100);
        n = fread(printed, 1, 99, out);
    }
    fclose(out);
    ck_assert_str_eq(printed, summaries[_i].printed);
    free(printed);
}
END_TEST

int main(void)
{
    base = workspace_create();
    Suite *suite = suite_create("summary");
    TCase *test = tcase_create("summary");
    tcase_set_timeout(test, 60);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_checked_fixture(test, reset_results, NULL);
    tcase_add_loop_test(test, test_score, 0, sizeof scores / sizeof *scores);
    tcase_add_loop_test(test, test_summary, 0, sizeof summaries / sizeof *summaries);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

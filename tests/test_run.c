/* The run over criteria, end to end: student files are built and called in processes of their own,
 * of several ranks and for several criteria, and each criterion gets the result that is its own. */
#define _GNU_SOURCE
#include "tests/run.h"

/* ---- criteria for these tests alone ---- */

static bool judge_all_probes(struct judge *j)
{
    for (int rank = 0; rank < 3; rank++)
        if (!expect_int(j, judge_observations(j, 3, rank), "answer", 49, "the answer"))
            return false;
    return expect_int(j, judge_observations(j, 2, 1), "answer", 49, "the answer");
}

static bool judge_speed(struct judge *j)
{
    judge_measured(j, "ratio", json_real(1.5));
    return judge_probe(j);
}

static bool judge_badly(struct judge *j)
{
    (void)j;
    return false; /* without a reason */
}

CRITERION(t_ranks, FOR_TESTS, .file = "data_parallel.c", .judge = judge_all_probes,
          .worlds = {2, 3})
CRITERION(t_supplied, FOR_TESTS, .file = "data_parallel.c", .judge = judge_probe,
          .supplied = "average_gradients")
CRITERION(t_pipeline, FOR_TESTS, .file = "pipeline.c", .judge = judge_probe)
CRITERION(t_speed, FOR_TESTS, .file = "pipeline.c", .judge = judge_speed, .speedup = true)
CRITERION(t_broken, FOR_TESTS, .file = "data_parallel.c", .judge = judge_badly)

/* ---- logs ---- */

START_TEST(output_is_kept_in_the_log_and_capped)
{
    run_one(&criterion_t_probe,
            PROBE("printf(\"first\\n\"); for (int i = 0; i < 1000000; i++) puts(\"again\");"
                  "printf(\"last, without an end\"); return *(volatile int *)0;"));
    assert_result(0, STATUS_FAILED, "SIGSEGV");
    char *log = temporary_read(t.results[0].log);
    ck_assert_uint_lt(strlen(log), 140000);
    ck_assert_ptr_nonnull(strstr(log, "first\nagain\n"));
    ck_assert_ptr_nonnull(strstr(log, " bytes cut ...]\n"));
    ck_assert_ptr_nonnull(strstr(log, "again\nlast, without an end\n"));
    free(log);
}
END_TEST

START_TEST(compiler_warnings_are_in_the_log)
{
    run_one(&criterion_t_probe, PROBE("int forgotten; return x * x;"));
    assert_result(0, STATUS_PASSED, NULL);
    char *log = temporary_read(t.results[0].log);
    ck_assert_ptr_nonnull(strstr(log, "assignment/data_parallel.c:9:5: warning: "));
    free(log);
}
END_TEST

/* ---- several ranks ---- */

#define REDUCE                                                                                     \
    "struct tensor *one = tensor_full(SHAPE(3), 1, FLOAT32, CPU);\n"                               \
    "(void)dist_all_reduce(one, DIST_SUM);\n"                                                      \
    "return tensor_get(one, 2) == dist_world_size() ? x * x : -1;"

static const struct {
    const char *source;
    double timeout_s;
    enum status status;
    const char *reasons[2];
} together[] = {
    {PROBE(REDUCE), 0, STATUS_PASSED, {NULL}},
    {PROBE("if (dist_rank() == 1) x = *(volatile int *)0;\n" REDUCE),
     0,
     STATUS_FAILED,
     {"rank 1 of ", "crashed: SIGSEGV (address 0x0) at assignment/data_parallel.c:9 in probe"}},
    {PROBE("if (dist_rank() == 1) return raise_error(TypeError, \"not today\");\n" REDUCE),
     0,
     STATUS_FAILED,
     {"rank 1 of ", "TypeError: not today"}},
    {PROBE("if (dist_rank() == 0) _exit(0);\n" REDUCE), 0, STATUS_FAILED, {"rank 0 of ", "exited"}},
    {PROBE("if (dist_rank() == 1) { raise(SIGABRT); } for (;;) pause(); return x;"),
     0,
     STATUS_FAILED,
     {"rank 1 of ", "SIGABRT"}},
    {PROBE("while (dist_rank() == 1) pause();\n" REDUCE),
     1,
     STATUS_TIMEOUT,
     {"rank 0 of 2: all_reduce", "rank 1 of 2: running, in a call made at "
                                 "assignment/data_parallel.c:9 in probe"}},
};

START_TEST(the_most_telling_rank_gives_the_reason)
{
    t.run.timeout_s = together[_i].timeout_s;
    run_one(&criterion_t_ranks, together[_i].source);
    assert_result(0, together[_i].status, together[_i].reasons[0]);
    for (int i = 0; i < 2 && together[_i].reasons[i]; i++)
        assert_result(0, together[_i].status, together[_i].reasons[i]);
}
END_TEST

START_TEST(every_rank_says_what_it_waited_for)
{
    t.run.timeout_s = 1;
    run_one(&criterion_t_ranks, PROBE("while (dist_rank() == 1) pause();\n" REDUCE));
    assert_result(0, STATUS_TIMEOUT,
                  "rank 0 of 2: all_reduce #1 (sum, float32, 3 elements), waiting for rank 1");
    assert_result(0, STATUS_TIMEOUT,
                  "rank 0 of 3: all_reduce #1 (sum, float32, 3 elements), waiting for rank 1");
    assert_result(0, STATUS_TIMEOUT,
                  "rank 2 of 3: all_reduce #1 (sum, float32, 3 elements), waiting for rank 1");
}
END_TEST

/* ---- several criteria ---- */

START_TEST(a_supplied_function_saves_the_criterion_from_the_students)
{
    static const char *const own[] = {"return 1;", "exit(0);", "for (;;) pause();",
                                      "return *(volatile int *)0;"};
    char source[2000];
    snprintf(source, sizeof source,
             HEADERS "int average_gradients(struct module *model) { (void)model; %s }\n"
                     "int probe(int x) { return x * x + average_gradients(tanh_new()); }\n",
             own[_i]);
    t.run.timeout_s = 1;
    add(&criterion_t_supplied);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(source, ""), 0);
    assert_result(0, STATUS_PASSED, NULL);
    ck_assert_int_ne(t.results[1].status, STATUS_PASSED);
}
END_TEST

START_TEST(a_file_that_does_not_compile_costs_its_own_criteria)
{
    add(&criterion_t_probe);
    add(&criterion_t_pipeline);
    ck_assert_int_eq(run("int probe(int x) { return x * y; }\n", RIGHT), 0);
    assert_result(0, STATUS_FAILED, "assignment/data_parallel.c:1:");
    assert_result(1, STATUS_PASSED, NULL);
    char *log = temporary_read(t.results[0].log);
    ck_assert_ptr_nonnull(strstr(log, "assignment/data_parallel.c:1:"));
    free(log);
}
END_TEST

START_TEST(a_speedup_runs_last_and_is_measured)
{
    add(&criterion_t_speed);
    add(&criterion_t_probe);
    add(&criterion_t_pipeline);
    ck_assert_int_eq(run(RIGHT, RIGHT), 0);
    for (int i = 0; i < 3; i++)
        assert_result(i, STATUS_PASSED, NULL);
    ck_assert_str_eq(t.order[2], "t_speed");
    ck_assert_double_eq(json_real_value(json_object_get(t.results[0].measurements, "ratio")), 1.5);
}
END_TEST

START_TEST(a_speedup_without_its_section_is_not_run)
{
    add(&criterion_t_speed);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(PROBE("return x;"), RIGHT), 0);
    assert_result(0, STATUS_FAILED,
                  "not measured: a speedup counts only if every other criterion "
                  "of its section passed, and t_probe did not");
    ck_assert_ptr_null(t.results[0].measurements);
    ck_assert_str_eq(t.order[1], "t_speed");
}
END_TEST

START_TEST(what_is_blocked_is_left_alone)
{
    add(&criterion_t_probe);
    add(&criterion_t_pipeline);
    t.results[1].status = STATUS_BLOCKED;
    ck_assert_int_eq(run(RIGHT, "this is not C"), 0);
    assert_result(0, STATUS_PASSED, NULL);
    assert_result(1, STATUS_BLOCKED, NULL);
    ck_assert_int_eq(t.finished, 1);
}
END_TEST

/* ---- not the student's fault ---- */

START_TEST(without_a_compiler_nothing_is_scored)
{
    setenv("CC", "no-such-compiler", 1);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(RIGHT, ""), -1);
    ck_assert_ptr_nonnull(strstr(t.fault, "no-such-compiler"));
    ck_assert_int_eq(t.results[0].status, STATUS_PENDING);
}
END_TEST

START_TEST(a_criterion_without_a_verdict_is_a_fault)
{
    add(&criterion_t_broken);
    ck_assert_int_eq(run(RIGHT, ""), -1);
    ck_assert_ptr_nonnull(strstr(t.fault, "criterion t_broken"));
    ck_assert_int_eq(t.results[0].status, STATUS_PENDING);
}
END_TEST

START_TEST(a_log_that_cannot_be_written_is_a_fault)
{
    add(&criterion_t_probe);
    ck_assert_int_eq(mkdir(t.results[0].log, 0700), 0);
    ck_assert_int_eq(run(RIGHT, ""), -1);
    ck_assert_ptr_nonnull(strstr(t.fault, t.results[0].log));
}
END_TEST

START_TEST(an_interrupt_ends_everything)
{
    t.interrupt_after_first = true;
    add(&criterion_t_pipeline);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(PROBE("for (;;) pause();"), RIGHT), -1);
    ck_assert_ptr_null(t.fault);
    assert_result(0, STATUS_PASSED, NULL);
    assert_result(1, STATUS_PENDING, NULL);
}
END_TEST

static Suite *run_suite(void)
{
    Suite *suite = suite_create("run");
    TCase *tests = tcase_create("run");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, output_is_kept_in_the_log_and_capped);
    tcase_add_test(tests, compiler_warnings_are_in_the_log);
    tcase_add_loop_test(tests, the_most_telling_rank_gives_the_reason, 0,
                        sizeof together / sizeof together[0]);
    tcase_add_test(tests, every_rank_says_what_it_waited_for);
    tcase_add_loop_test(tests, a_supplied_function_saves_the_criterion_from_the_students, 0, 4);
    tcase_add_test(tests, a_file_that_does_not_compile_costs_its_own_criteria);
    tcase_add_test(tests, a_speedup_runs_last_and_is_measured);
    tcase_add_test(tests, a_speedup_without_its_section_is_not_run);
    tcase_add_test(tests, what_is_blocked_is_left_alone);
    tcase_add_test(tests, without_a_compiler_nothing_is_scored);
    tcase_add_test(tests, a_criterion_without_a_verdict_is_a_fault);
    tcase_add_test(tests, a_log_that_cannot_be_written_is_a_fault);
    tcase_add_test(tests, an_interrupt_ends_everything);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(int argc, char **argv)
{
    return run_main(argc, argv, run_suite);
}

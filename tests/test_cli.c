/* test_cli.c - the built command, from its arguments to what it leaves behind */
#include <dirent.h>
#include <jansson.h>
#include <signal.h>

#include "tests/alone.h"
#include "tests/cli.h"
#include "tests/suite.h"

/* ---- files ---- */

static int files_in(const char *path)
{
    int n = 0;
    DIR *open = opendir(path);
    ck_assert_ptr_nonnull(open);
    while (readdir(open))
        n++;
    closedir(open);
    return n - 2;
}

static void expect_nothing_left(void)
{
    ck_assert_int_eq(files_in("tmp"), 0);
    ck_assert(is_alone());
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- reports ---- */

static json_t *load_report(void)
{
    json_error_t error;
    json_t *report = json_load_file("artifacts/grade.json", 0, &error);
    ck_assert_msg(report != NULL, "%s", error.text);
    return report;
}

static const json_t *criterion_in(const json_t *report, const char *id)
{
    size_t i;
    const json_t *criterion;
    json_array_foreach(json_object_get(report, "criteria"), i,
                       criterion) if (strcmp(json_string_value(json_object_get(criterion, "id")),
                                             id) == 0) return criterion;
    ck_abort_msg("%s is not in the report", id);
    return NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The criteria's statuses in the rubric's order, as the initials P, F, T and B. */
static void statuses_of(const json_t *report, char *initials)
{
    size_t i;
    const json_t *criterion;
    json_array_foreach(json_object_get(report, "criteria"), i, criterion) *initials++ =
        (char)(text_of(criterion, "status")[0] - 'a' + 'A');
    *initials = '\0';
}

/* ---- arguments ---- */

static const struct {
    const char *arguments[ARGUMENTS];
    const char *said;
} usage_errors[] = {
    {{"--device", "gpu"}, "--device 'gpu': must be auto, cpu, cuda or sim"},
    {{"--timeout", "0"}, "--timeout '0'"},
    {{"--nonsense"}, "--nonsense: no such option"},
    {{"--only", "lroa"}, "did you mean lora?"},
    {{"surprise"}, "'surprise': unexpected argument"},
    {{"--submission", "nowhere"}, "--submission nowhere: no such folder or zip file"},
    {{"--submission", "tmp"}, "--submission tmp: missing: data_parallel.c"},
    {{"--submission", "/dev/zero"}, "--submission /dev/zero: is a device"},
    {{"--output", "tmp"}, "--output 'tmp': is a folder"},
    {{"--output", "/proc/nothing/grade.json"}, "--output '/proc/nothing/grade.json'"},
    {{"--output", "../out/grade.json"}, "--output '../out/grade.json': Not a directory"},
};

/* One line on stderr, status 64, and nothing written. */
START_TEST(test_usage_error)
{
    const char *arguments[ARGUMENTS + 2] = {executable};
    for (int i = 0; usage_errors[_i].arguments[i]; i++)
        arguments[i + 1] = usage_errors[_i].arguments[i];
    ck_assert_int_eq(run(arguments), EXIT_USAGE);
    ck_assert_msg(strstr(outcome.err, usage_errors[_i].said) != NULL, "%s", outcome.err);
    ck_assert_uint_eq(strcspn(outcome.err, "\n"), strlen(outcome.err) - 1);
    ck_assert_str_eq(outcome.out, "");
    ck_assert_int_eq(files_in("."), 1); /* tmp */
    expect_nothing_left();
}
END_TEST

START_TEST(test_missing_file)
{
    write_submission(NULL, "nothing", "");
    unlink("sub/assignment/finetune.c");
    ck_assert_int_eq(grade("--submission", "sub", NULL), EXIT_USAGE);
    ck_assert_str_eq(outcome.err, "grade: --submission sub/assignment: missing: finetune.c\n");
    ck_assert_int_eq(access("artifacts", F_OK), -1);
}
END_TEST

static const struct {
    const char *argument, *printed;
} answers[] = {
    {"--help", "--submission PATH"}, {"--version", "grade "}, {"--list", "pipeline_performance"}};

START_TEST(test_answers)
{
    ck_assert_int_eq(grade(answers[_i].argument, NULL), 0);
    ck_assert_ptr_nonnull(strstr(outcome.out, answers[_i].printed));
    ck_assert_str_eq(outcome.err, "");
    ck_assert_int_eq(files_in("."), 1);
}
END_TEST

START_TEST(test_answers_that_cannot_be_written)
{
    const char *command[] = {
        "sh", "-c", "exec \"$0\" \"$1\" >/dev/full", executable, answers[_i].argument, NULL};
    if (access("/dev/full", W_OK) < 0)
        return;
    ck_assert_int_eq(run(command), EXIT_FAULT);
    ck_assert_ptr_nonnull(strstr(outcome.err, "standard output: No space left on device\n"));
}
END_TEST

/* ---- whole grades ---- */

/* Code planted in the reference solution, and what becomes of every criterion, in the rubric's
 * order: partitions gradients updates dp_performance, schedule forward backward
 * pipeline_performance, config zero_runtime lora zero_updates adapter. */
static const struct {
    const char *file, *function, *code, *statuses;
    int earned;
    const char *id, *reason; /* a criterion, and what its reason holds */
} grades[] = {
    {NULL, "nothing", "", "PPPBPPPBPBPBP", 58, "zero_runtime", "needs two GPUs"},
    {"data_parallel.c", "average_gradients", "return this_is_no_c;", "FFFBPPPBPBPBP", 37,
     "gradients", "this_is_no_c"},
    {"data_parallel.c", "average_gradients", "if (model) return 0;", "PFPBPPPBPBPBP", 51,
     "gradients", ""},
    {"pipeline.c", "clock_cycles", "if (stages) return schedule_new(0, stages);", "PPPBFPPBPBPBP",
     53, "schedule", ""},
    {"finetune.c", "apply_lora", "*(volatile int *)0 = 1;", "PPPBPPPBPBFBP", 52, "lora", "SIGSEGV"},
    {NULL, "", "exit(0);", "FFFBFFFBFBFBF", 0, "config", ""},
    {NULL, "", "_exit(0);", "FFFBFFFBFBFBF", 0, "schedule", ""},
    {NULL, "",
     "puts(\"PASS\"); puts(\"{\\\"status\\\": \\\"passed\\\"}\"); fflush(stdout); _exit(0);",
     "FFFBFFFBFBFBF", 0, "adapter", ""},
};

START_TEST(test_grade)
{
    char statuses[64];
    write_submission(grades[_i].file, grades[_i].function, grades[_i].code);
    int status = grade("--submission", "sub", "--device", "cpu", NULL);
    json_t *report = load_report();
    statuses_of(report, statuses);
    ck_assert_msg(strcmp(statuses, grades[_i].statuses) == 0, "%s instead of %s\n%s%s", statuses,
                  grades[_i].statuses, outcome.out, outcome.err);
    ck_assert_int_eq(status, grades[_i].earned == 58 ? 2 : 1);
    ck_assert_int_eq(json_integer_value(json_object_get(report, "earned")), grades[_i].earned);
    ck_assert_int_eq(json_integer_value(json_object_get(report, "possible")), 100);
    ck_assert_int_eq(json_integer_value(json_object_get(report, "blocked_points")), 42);
    const char *reason = text_of(criterion_in(report, grades[_i].id), "reason");
    ck_assert_msg(*reason && strstr(reason, grades[_i].reason), "%s", reason);
    json_decref(report);
    expect_nothing_left();
}
END_TEST

START_TEST(test_a_score_that_cannot_be_written)
{
    const char *command[] = {"sh", "-c", "exec \"$0\" --only lora -q >/dev/full", executable, NULL};
    if (access("/dev/full", W_OK) < 0)
        return;
    ck_assert_int_eq(run(command), EXIT_FAULT);
    ck_assert_ptr_nonnull(strstr(outcome.err, "standard output: No space left on device\n"));
}
END_TEST

START_TEST(test_a_report_that_would_replace_the_submission)
{
    write_submission("pipeline.c", "clock_cycles", "");
    const char *command[] = {
        executable, "--submission", "sub", "--output", "sub/assignment/pipeline.c", NULL};
    ck_assert_int_eq(run(command), EXIT_USAGE);
    ck_assert_str_eq(outcome.err,
                     "grade: --output sub/assignment/pipeline.c: is part of the submission\n");
}
END_TEST

START_TEST(test_starter)
{
    char statuses[64];
    ck_assert_int_eq(
        grade("--submission", in_root("assignment"), "--quiet", "--device", "cpu", NULL), 1);
    ck_assert_str_eq(outcome.out, "0/100  (42 blocked)\n");
    json_t *report = load_report();
    statuses_of(report, statuses);
    ck_assert_str_eq(statuses, "FFFBFFFBFBFBF");
    ck_assert_ptr_nonnull(
        strstr(text_of(criterion_in(report, "schedule"), "reason"), "not implemented"));
    json_decref(report);
    expect_nothing_left();
}
END_TEST

/* The submission knows where the report is, and writes its own. */
START_TEST(test_report_is_not_the_students)
{
    char *code = format_or_fault("FILE *f = fopen(\"%s/artifacts/grade.json\", \"w\");"
                                 "if (f) { fputs(\"{\\\"earned\\\": 100}\", f); fclose(f); }"
                                 "_exit(0);",
                                 folder);
    write_submission(NULL, "", code);
    ck_assert_int_eq(grade("--submission", "sub", "--device", "cpu", NULL), 1);
    json_t *report = load_report();
    ck_assert_int_eq(json_integer_value(json_object_get(report, "earned")), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(report, "criteria")), 13);
    json_decref(report);
    free(code);
}
END_TEST

START_TEST(test_report_facts)
{
    write_submission(NULL, "nothing", "");
    ck_assert_int_eq(
        grade("--submission", "sub", "--only", "config,schedule", "--seed", "77", NULL), 0);
    json_t *report = load_report();
    ck_assert_str_eq(text_of(report, "state"), "complete");
    ck_assert_str_eq(text_of(report, "device"), "cpu");
    ck_assert_int_eq(json_integer_value(json_object_get(report, "seed")), 77);
    ck_assert_int_eq(json_integer_value(json_object_get(report, "possible")), 7);
    const json_t *hashes = json_object_get(report, "source_sha256");
    ck_assert_uint_eq(strlen(text_of(hashes, "pipeline.c")), 64);
    const json_t *versions = json_object_get(report, "versions");
    ck_assert_str_ne(text_of(versions, "student_compiler"), "");
    ck_assert_int_eq(access(text_of(criterion_in(report, "config"), "log"), R_OK), 0);
    ck_assert_int_eq(access("artifacts/grade-logs/schedule.log", R_OK), 0);
    ck_assert_int_eq(files_in("artifacts/grade-logs"), 2);
    json_decref(report);
}
END_TEST

START_TEST(test_cuda_without_gpus)
{
    char statuses[64];
    write_submission(NULL, "nothing", "");
    int status = grade("--submission", "sub", "--device", "cuda", "--section", "dp", NULL);
    json_t *report = load_report();
    statuses_of(report, statuses);
    if (json_array_size(json_object_get(report, "gpu_names")) < 2) {
        ck_assert_int_eq(status, 2);
        ck_assert_str_eq(statuses, "BBBB");
        ck_assert_ptr_nonnull(strstr(text_of(criterion_in(report, "gradients"), "reason"), "GPUs"));
    }
    json_decref(report);
}
END_TEST

/* All points, the same speedups in every run, and never official. */
START_TEST(test_simulated_gpus)
{
    static const char *const profiles[] = {"v100-nvlink", "v100-pcie"};
    char statuses[64];
    write_submission(NULL, "nothing", "");
    int status =
        grade("--submission", "sub", "--device", "sim", "--sim-profile", profiles[_i], NULL);
    json_t *report = load_report();
    statuses_of(report, statuses);
    ck_assert_msg(strcmp(statuses, "PPPPPPPPPPPPP") == 0, "%s\n%s", statuses, outcome.out);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(report, "earned")), 100);
    ck_assert_str_eq(text_of(report, "device"), "sim");
    ck_assert(json_is_false(json_object_get(report, "official")));
    const json_t *measured =
        json_object_get(criterion_in(report, "pipeline_performance"), "measurements");
    const json_t *ratios = json_object_get(measured, "ratios");
    for (size_t i = 1; i < json_array_size(ratios); i++)
        ck_assert_double_eq_tol(json_number_value(json_array_get(ratios, i)),
                                json_number_value(json_array_get(ratios, 0)), 1e-6);
    const json_t *workload = json_object_get(measured, "workload");
    ck_assert_int_eq(json_integer_value(json_object_get(workload, "width")), 2048);
    ck_assert_int_eq(json_integer_value(json_object_get(workload, "rows")), 8192);
    double seconds =
        json_number_value(json_array_get(json_object_get(measured, "student_seconds"), 0));
    ck_assert_double_eq_tol(json_number_value(json_object_get(measured, "rows_per_second")) *
                                seconds / (3 * 8192),
                            1, 1e-3);
    json_decref(report);
    expect_nothing_left();
}
END_TEST

START_TEST(test_timeout)
{
    write_submission("pipeline.c", "clock_cycles", "for (volatile int i = 0;; i++) ;");
    ck_assert_int_eq(
        grade("--submission", "sub", "--only", "schedule,config", "--timeout", "1", NULL), 1);
    json_t *report = load_report();
    ck_assert_str_eq(text_of(criterion_in(report, "schedule"), "status"), "timeout");
    ck_assert_str_eq(text_of(criterion_in(report, "config"), "status"), "passed");
    json_decref(report);
    expect_nothing_left();
}
END_TEST

/* ---- interruption and faults ---- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* The report in ./report says that the criterion has finished. */
static bool has_passed(const char *id)
{
    json_t *report = json_load_file("artifacts/grade.json", 0, NULL);
    bool passed = report && strcmp(text_of(criterion_in(report, id), "status"), "passed") == 0;
    json_decref(report);
    return passed;
}

/* One criterion is done, another runs for ever: the signal ends everything, the report keeps what
 * was known, nothing is left. */
START_TEST(test_interrupt)
{
    write_submission("pipeline.c", "clock_cycles", "for (volatile int i = 0;; i++) ;");
    const char *arguments[] = {executable, "--submission",    "sub",
                               "--only",   "schedule,config", NULL};
    pid_t pid = start(arguments);
    while (!has_passed("config"))
        usleep(2000);
    kill(pid, signals[_i]);
    ck_assert_int_eq(end_of(pid), 128 + signals[_i]);
    json_t *report = load_report();
    ck_assert_str_eq(text_of(report, "state"), "interrupted");
    ck_assert_str_eq(text_of(criterion_in(report, "config"), "status"), "passed");
    ck_assert_str_eq(text_of(criterion_in(report, "schedule"), "status"), "pending");
    json_decref(report);
    expect_nothing_left();
}
END_TEST

static const struct {
    const char *variable, *value, *said;
} faults[] = {
    {"TMPDIR", "/proc/nowhere", "/proc/nowhere"},
    {"CC", "/proc/no-compiler", "no-compiler"},
};

/* The machine's fault is told as such, and a former report stays. */
START_TEST(test_fault)
{
    write_submission(NULL, "nothing", "");
    mkdir("artifacts", 0777);
    write_text("artifacts/grade.json", "{\"former\": true}");
    setenv(faults[_i].variable, faults[_i].value, 1);
    ck_assert_int_eq(grade("--submission", "sub", NULL), EXIT_FAULT);
    ck_assert_ptr_nonnull(strstr(outcome.err, "a fault of this machine"));
    ck_assert_ptr_nonnull(strstr(outcome.err, faults[_i].said));
    json_t *report = load_report();
    ck_assert_ptr_nonnull(json_object_get(report, "former"));
    json_decref(report);
    expect_nothing_left();
}
END_TEST

#ifdef __linux__
/* Where no program runs, no student's library can be loaded. Needs a mount of its own. */
START_TEST(test_folder_without_programs)
{
    const char *mounted[] = {"unshare",
                             "-rm",
                             "sh",
                             "-c",
                             "mount -t tmpfs -o noexec none tmp && exec \"$0\" --submission sub",
                             executable,
                             NULL};
    write_submission(NULL, "nothing", "");
    if (run((const char *[]){"unshare", "-rm", "mount", "-t", "tmpfs", "none", "tmp", NULL}) != 0)
        return;
    ck_assert_int_eq(run(mounted), EXIT_FAULT);
    ck_assert_ptr_nonnull(strstr(outcome.err, "noexec"));
}
END_TEST
#endif

START_TEST(test_files_that_may_not_grow)
{
    write_submission(NULL, "nothing", "");
    const char *limited[] = {"sh", "-c", "ulimit -f 1; exec \"$0\" --submission sub", executable,
                             NULL};
    ck_assert_int_eq(run(limited), EXIT_FAULT);
    ck_assert_ptr_nonnull(strstr(outcome.err, strerror(EFBIG)));
    expect_nothing_left();
}
END_TEST

int main(void)
{
    find_grade();
    Suite *suite = suite_create("cli");
    TCase *test = tcase_create("cli");
    tcase_set_timeout(test, 300);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_loop_test(test, test_usage_error, 0, sizeof usage_errors / sizeof *usage_errors);
    tcase_add_test(test, test_missing_file);
    tcase_add_loop_test(test, test_answers, 0, sizeof answers / sizeof *answers);
    tcase_add_loop_test(test, test_answers_that_cannot_be_written, 0,
                        sizeof answers / sizeof *answers);
    tcase_add_loop_test(test, test_grade, 0, sizeof grades / sizeof *grades);
    tcase_add_test(test, test_starter);
    tcase_add_test(test, test_a_score_that_cannot_be_written);
    tcase_add_test(test, test_a_report_that_would_replace_the_submission);
    tcase_add_test(test, test_report_is_not_the_students);
    tcase_add_test(test, test_report_facts);
    tcase_add_test(test, test_cuda_without_gpus);
    tcase_add_loop_test(test, test_simulated_gpus, 0, 2);
    tcase_add_test(test, test_timeout);
    tcase_add_loop_test(test, test_interrupt, 0, sizeof signals / sizeof *signals);
    tcase_add_loop_test(test, test_fault, 0, sizeof faults / sizeof *faults);
#ifdef __linux__
    tcase_add_test(test, test_folder_without_programs);
#endif
    tcase_add_test(test, test_files_that_may_not_grow);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

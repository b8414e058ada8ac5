/* test_report.c - the report file, the score, the summary, and what is blocked */
#include "grading/report.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/gpus.h"
#include "grading/home.h"
#include "grading/rubric.h"
#include "grading/score.h"
#include "grading/summary.h"
#include "grading/workspace.h"
#include "runtime/error.h"
#include "runtime/plugin.h"
#include "runtime/scope.h"
#include "tests/suite.h"

/* Four criteria worth 7 + 7 + 14 + 5 points. */
static const char *const ids[] = {"partitions", "gradients", "dp_performance", "schedule"};
enum { RESULTS = sizeof ids / sizeof *ids };
static struct result results[RESULTS];
static struct run run = {.device = "cpu", .count = RESULTS, .results = results};
static struct report report;
static char *problem;
static const char *base; /* holds a folder for each test */

static void enter_folder(void)
{
    char *folder = format_or_fault("%s/XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    free(folder);
    for (int i = 0; i < RESULTS; i++)
        results[i] = (struct result){.criterion = rubric_find(ids[i])};
    results[2].status = STATUS_BLOCKED;
    results[2].reason = (char *)"needs two V100 GPUs";
}

static void open_report(const char *path)
{
    ck_assert_msg(report_open(&report, path, &problem) == 0, "%s", problem);
    report_begin(&report, json_pack("{s:i}", "schema_version", 1), &run);
}

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *whole = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(whole != NULL, "%s:%d: %s", path, error.line, error.text);
    return whole;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static int64_t integer(const json_t *object, const char *key)
{
    ck_assert_msg(json_is_integer(json_object_get(object, key)), "%s", key);
    return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    ck_assert_msg(json_is_string(json_object_get(object, key)), "%s", key);
    return json_string_value(json_object_get(object, key));
}

static int files_in(const char *folder)
{
    int n = 0;
    DIR *open = opendir(folder);
    ck_assert_ptr_nonnull(open);
    while (readdir(open))
        n++;
    closedir(open);
    return n - 2;
}

/* ---- the file ---- */

START_TEST(test_skeleton)
{
    open_report("artifacts/grade.json");
    json_t *whole = load("artifacts/grade.json");
    ck_assert_str_eq(text(whole, "state"), "running");
    ck_assert_int_eq(integer(whole, "schema_version"), 1);
    ck_assert_int_eq(integer(whole, "earned"), 0);
    ck_assert_int_eq(integer(whole, "possible"), 33);
    ck_assert_int_eq(integer(whole, "blocked_points"), 14);
    json_t *criteria = json_object_get(whole, "criteria");
    ck_assert_uint_eq(json_array_size(criteria), RESULTS);
    ck_assert_str_eq(text(json_array_get(criteria, 0), "status"), "pending");
    ck_assert_str_eq(text(json_array_get(criteria, 2), "status"), "blocked");
    json_decref(whole);
    report_close(&report);
}
END_TEST

START_TEST(test_results)
{
    open_report("r.json");
    write_text("r-logs/gradients.log", "x");
    results[0] = (struct result){
        .criterion = results[0].criterion, .status = STATUS_PASSED, .seconds = 0.12345};
    results[1].status = STATUS_TIMEOUT;
    results[1].returncode = -9;
    results[1].seconds = NAN;
    results[1].reason = (char *)"\x1B[31mlate\xFF\nsecond line";
    results[1].cause = (char *)"likely cause: a\x1B[31msleep";
    results[1].log = report_log(&report, "gradients");
    results[1].measurements = json_pack("{s:f}", "median", 1.25);
    report_update(&report, &run, "complete", NULL);
    ck_assert_ptr_null(report.broken);

    json_t *whole = load("r.json"), *criteria = json_object_get(whole, "criteria");
    const json_t *first = json_array_get(criteria, 0), *second = json_array_get(criteria, 1);
    ck_assert_int_eq(integer(whole, "earned"), 7);
    ck_assert_str_eq(text(first, "id"), "partitions");
    ck_assert_str_eq(text(first, "section"), "dp");
    ck_assert_int_eq(integer(first, "possible"), 7);
    ck_assert_int_eq(integer(first, "earned"), 7);
    ck_assert_str_eq(text(first, "status"), "passed");
    ck_assert_double_eq(json_real_value(json_object_get(first, "seconds")), 0.123);
    ck_assert(json_is_null(json_object_get(first, "reason")));
    ck_assert(json_is_null(json_object_get(first, "log")));
    ck_assert_int_eq(integer(second, "earned"), 0);
    ck_assert_str_eq(text(second, "status"), "timeout");
    ck_assert_int_eq(integer(second, "returncode"), -9);
    ck_assert_double_eq(json_real_value(json_object_get(second, "seconds")), 0);
    ck_assert_str_eq(text(second, "reason"), "late\xEF\xBF\xBD\nsecond line");
    ck_assert_ptr_null(json_object_get(first, "cause"));
    ck_assert_str_eq(text(second, "cause"), "likely cause: asleep");
    ck_assert_str_eq(text(second, "log"), results[1].log);
    const json_t *measured = json_object_get(second, "measurements");
    ck_assert_double_eq(json_real_value(json_object_get(measured, "median")), 1.25);
    json_decref(whole);
    json_decref(results[1].measurements);
    free(results[1].log);
    report_close(&report);
}
END_TEST

/* A former report stays until this run has something to say, and a fault says nothing. */
START_TEST(test_former_report)
{
    static const char *const states[] = {"running", "fault", "interrupted"};
    write_text("r.json", "{\"former\": true}");
    open_report("r.json");
    for (int i = 0; i < 3; i++) {
        report_update(&report, &run, states[i], NULL);
        json_t *whole = load("r.json");
        ck_assert_ptr_nonnull(json_object_get(whole, "former"));
        json_decref(whole);
    }
    results[0].status = STATUS_FAILED;
    report_update(&report, &run, "fault", "no disk");
    json_t *whole = load("r.json");
    ck_assert_ptr_null(json_object_get(whole, "former"));
    ck_assert_str_eq(text(whole, "detail"), "no disk");
    json_decref(whole);
    report_close(&report);
}
END_TEST

/* Everything blocked is a complete run too. */
START_TEST(test_former_report_and_nothing_to_run)
{
    write_text("r.json", "{\"former\": true}");
    for (int i = 0; i < RESULTS; i++)
        results[i].status = STATUS_BLOCKED;
    open_report("r.json");
    report_update(&report, &run, "complete", NULL);
    json_t *whole = load("r.json");
    ck_assert_int_eq(integer(whole, "blocked_points"), 33);
    json_decref(whole);
    report_close(&report);
}
END_TEST

START_TEST(test_nothing_is_left_beside)
{
    open_report("a/b/c/r.json");
    for (int i = 0; i < 10; i++)
        report_update(&report, &run, "running", NULL);
    ck_assert_int_eq(files_in("a/b/c"), 2); /* r.json and r-logs */
    report_close(&report);
}
END_TEST

START_TEST(test_reader_sees_whole_reports)
{
    open_report("r.json");
    FILE *reader = fopen("r.json", "r"); /* while the next one is written */
    results[0].status = STATUS_FAILED;
    report_update(&report, &run, "running", NULL);
    json_t *old = json_loadf(reader, 0, NULL), *new = load("r.json");
    ck_assert_str_eq(text(json_array_get(json_object_get(old, "criteria"), 0), "status"),
                     "pending");
    ck_assert_str_eq(text(json_array_get(json_object_get(new, "criteria"), 0), "status"), "failed");
    json_decref(old);
    json_decref(new);
    fclose(reader);
    report_close(&report);
}
END_TEST

START_TEST(test_link_is_followed)
{
    write_text("target.json", "{}");
    ck_assert_int_eq(symlink("target.json", "r.json"), 0);
    open_report("r.json");
    report_update(&report, &run, "complete", NULL);
    struct stat info;
    ck_assert_int_eq(lstat("r.json", &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    json_t *whole = load("target.json");
    ck_assert_str_eq(text(whole, "state"), "complete");
    json_decref(whole);
    report_close(&report);
}
END_TEST

START_TEST(test_mode_follows_umask)
{
    struct stat info;
    umask(027);
    open_report("r.json");
    ck_assert_int_eq(stat("r.json", &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
    report_close(&report);
}
END_TEST

START_TEST(test_logs)
{
    static const struct {
        const char *output, *log;
    } names[] = {{"artifacts/grade.json", "/artifacts/grade-logs/lora.log"},
                 {"other.json", "/other-logs/lora.log"},
                 {"noext", "/noext-logs/lora.log"},
                 {"./x.txt", "/x.txt-logs/lora.log"},
                 {".json", "/.json-logs/lora.log"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(report_open(&report, names[i].output, &problem), 0);
        char *log = report_log(&report, "lora"), *folder = realpath(".", NULL);
        ck_assert_int_eq(strncmp(log, folder, strlen(folder)), 0);
        ck_assert_str_eq(log + strlen(folder), names[i].log);
        free(log);
        free(folder);
        report_close(&report);
    }
}
END_TEST

START_TEST(test_former_logs_are_removed)
{
    mkdir("r-logs", 0777);
    write_text("r-logs/lora.log", "old");
    write_text("r-logs/notes.txt", "mine");
    open_report("r.json");
    ck_assert_int_eq(access("r-logs/lora.log", F_OK), -1);
    ck_assert_int_eq(access("r-logs/notes.txt", F_OK), 0);
    report_close(&report);
}
END_TEST

static const struct {
    const char *output, *said;
} unwritable[] = {
    {"folder", "is a folder"},
    {"folder/", "is a folder"},
    {"new/", "is a folder"},
    {"file/r.json", "Not a directory"},
    {"/dev/null", "is not a regular file"},
    {"fifo", "is not a regular file"},
    {"/proc/r.json", "No such file or directory"},
    {"blocked.json", "is not a folder"}, /* its logs' place is taken */
    {"\x1B[31m/proc/r.json", "--output"},
};

START_TEST(test_unwritable)
{
    mkdir("folder", 0777);
    write_text("file", "x");
    write_text("blocked-logs", "x");
    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    int before = files_in(".");
    if (_i == 8)
        write_text("\x1B[31m", "x");
    ck_assert_int_eq(report_open(&report, unwritable[_i].output, &problem), -1);
    ck_assert_msg(strstr(problem, unwritable[_i].said), "%s", problem);
    ck_assert_ptr_nonnull(strstr(problem, "--output '"));
    ck_assert_ptr_null(strchr(problem, '\x1B'));
    ck_assert_int_eq(files_in("."), before + (_i == 8));
    free(problem);
}
END_TEST

START_TEST(test_broken_later)
{
    open_report("a/r.json");
    ck_assert_int_eq(rename("a", "b"), 0);
    report_update(&report, &run, "complete", NULL);
    ck_assert_ptr_nonnull(report.broken);
    ck_assert_ptr_nonnull(strstr(report.broken, "a/r.json"));
    ck_assert_int_eq(rename("b", "a"), 0);
    report_update(&report, &run, "complete", NULL);
    ck_assert_ptr_null(report.broken);
    report_close(&report);
}
END_TEST

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

/* ---- what is blocked ---- */

#define V100 "Tesla V100-SXM2-16GB"

static const struct {
    const char *device;
    struct gpus gpus;
    enum needs needs;
    const char *reason;
} blocks[] = {
    {"cpu", {0}, NEEDS_NOTHING, NULL},
    {"cpu", {0}, NEEDS_TWO_GPUS, "needs two GPUs; this run is on the CPU"},
    {"cpu", {0}, NEEDS_TWO_V100S, "needs two V100 GPUs; this run is on the CPU"},
    {"cuda",
     {.reason = "libcuda.so.1 not found"},
     NEEDS_NOTHING,
     "needs two GPUs: libcuda.so.1 not found"},
    {"cuda", {0}, NEEDS_TWO_GPUS, "needs two GPUs: 0 found"},
    {"cuda",
     {.count = 1, .names = {"NVIDIA H200"}},
     NEEDS_NOTHING,
     "needs two GPUs: 1 found, NVIDIA H200"},
    {"cuda",
     {.count = 2, .names = {V100, V100}, .no_device = "libcublas.so.12: cannot open it"},
     NEEDS_NOTHING,
     "libcublas.so.12: cannot open it"},
    {"cuda", {.count = 2, .names = {V100, V100}}, NEEDS_TWO_V100S, NULL},
    {"cuda",
     {.count = 2, .names = {V100, "NVIDIA H200"}},
     NEEDS_TWO_V100S,
     "needs two V100 GPUs: found " V100 " and NVIDIA H200"},
    {"cuda", {.count = 2, .names = {"A100", "A100"}, .no_nccl = "absent"}, NEEDS_TWO_GPUS, NULL},
    {"cuda",
     {.count = 2, .names = {V100, V100}, .no_nccl = "libnccl.so.2: cannot open it"},
     NEEDS_TWO_V100S,
     "needs NCCL: libnccl.so.2: cannot open it"},
    {"sim", {.count = 2, .simulated = true}, NEEDS_TWO_V100S, NULL},
};

/* A speedup of ranks, where V100s are needed. */
START_TEST(test_blocks)
{
    const struct criterion criterion = {.id = "x",
                                        .needs = blocks[_i].needs,
                                        .speedup = blocks[_i].needs == NEEDS_TWO_V100S,
                                        .worlds = {2}};
    char *reason = gpus_block(&blocks[_i].gpus, blocks[_i].device, &criterion);
    ck_assert_pstr_eq(reason, blocks[_i].reason);
    free(reason);
}
END_TEST

/* The probe answers on every machine, and its answer is consistent. */
START_TEST(test_probe)
{
    struct gpus gpus;
    gpus_probe(&gpus);
    ck_assert_int_ge(gpus.count, 0);
    ck_assert_int_le(gpus.count, GPUS_MAX);
    ck_assert(gpus.count == 0 || gpus.reason[0] == '\0');
    for (int i = 0; i < gpus.count; i++)
        ck_assert_str_ne(gpus.names[i], "");
}
END_TEST

/* What was built can be loaded, on machines without a driver too. */
START_TEST(test_cuda_device)
{
    SCOPE;
    char *home = home_find();
    const char *path = scope_printf("%s/" BUILD_FOLDER "/cuda.so", home);
    free(home);
    if (access(path, R_OK) < 0)
        return;
    ck_assert_msg(plugin_load(path) == 0, "%s",
                  error_occurred() ? error_message(error_pending()) : "");
    ck_assert_str_eq(plugin_current()->name, "cuda");
    ck_assert_int_ge(plugin_current()->toolkit, 12000);
}
END_TEST

int main(void)
{
    base = workspace_create();
    Suite *suite = suite_create("report");
    TCase *test = tcase_create("report");
    tcase_set_timeout(test, 60);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_test(test, test_skeleton);
    tcase_add_test(test, test_results);
    tcase_add_test(test, test_former_report);
    tcase_add_test(test, test_former_report_and_nothing_to_run);
    tcase_add_test(test, test_nothing_is_left_beside);
    tcase_add_test(test, test_reader_sees_whole_reports);
    tcase_add_test(test, test_link_is_followed);
    tcase_add_test(test, test_mode_follows_umask);
    tcase_add_test(test, test_logs);
    tcase_add_test(test, test_former_logs_are_removed);
    tcase_add_loop_test(test, test_unwritable, 0, sizeof unwritable / sizeof *unwritable);
    tcase_add_test(test, test_broken_later);
    tcase_add_loop_test(test, test_score, 0, sizeof scores / sizeof *scores);
    tcase_add_loop_test(test, test_summary, 0, sizeof summaries / sizeof *summaries);
    tcase_add_loop_test(test, test_blocks, 0, sizeof blocks / sizeof *blocks);
    tcase_add_test(test, test_probe);
    tcase_add_test(test, test_cuda_device);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

/* test_report.c - the report file, and the logs beside it */
#include "grading/report.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/results.h"
#include "tests/suite.h"

static struct report report;
static char *problem;

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

int main(void)
{
    base = workspace_create();
    Suite *suite = suite_create("report");
    TCase *test = tcase_create("report");
    tcase_set_timeout(test, 60);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_checked_fixture(test, reset_results, NULL);
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
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

#define _GNU_SOURCE /* realpath */
#include "grading/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/rubric.h"
#include "grading/score.h"

/* ---- values ---- */

void report_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        fault("out of memory");
}

json_t *report_text(const char *text)
{
    if (!text)
        return json_null();
    char *clean = clean_or_fault(text);
    json_t *value = json_string(clean);
    free(clean);
    return value;
}

/* Milliseconds are as much as is meant. */
static json_t *seconds_json(double seconds)
{
    return json_real(isfinite(seconds) ? round(seconds * 1e3) / 1e3 : 0);
}

static json_t *result_json(const struct result *result)
{
    const struct criterion *criterion = result->criterion;
    bool ran = result->status != STATUS_PENDING && result->status != STATUS_BLOCKED;
    bool logged = ran && result->log && access(result->log, F_OK) == 0;
    json_t *object = json_object();
    report_put(object, "id", json_string(criterion->id));
    report_put(object, "problem", json_string(criterion->problem));
    report_put(object, "section", json_string(criterion->section));
    report_put(object, "possible", json_integer(criterion->points));
    report_put(object, "earned", json_integer(score_earned(result)));
    report_put(object, "status", json_string(status_name(result->status)));
    report_put(object, "seconds", seconds_json(result->seconds));
    report_put(object, "returncode", ran ? json_integer(result->returncode) : json_null());
    report_put(object, "log", report_text(logged ? result->log : NULL));
    report_put(object, "reason", report_text(result->reason));
    if (result->cause)
        report_put(object, "cause", report_text(result->cause));
    if (result->measurements)
        report_put(object, "measurements", json_incref(result->measurements));
    return object;
}

static json_t *report_json(const struct report *report, const struct run *run, const char *state,
                           const char *detail)
{
    struct score score = score_of(run);
    json_t *whole = json_copy(report->head), *criteria = json_array();
    for (int i = 0; i < run->count; i++) {
        if (json_array_append_new(criteria, result_json(&run->results[i])) < 0)
            fault("out of memory");
    }
    report_put(whole, "state", json_string(state));
    report_put(whole, "detail", report_text(detail));
    report_put(whole, "criteria", criteria);
    report_put(whole, "earned", json_integer(score.earned));
    report_put(whole, "possible", json_integer(score.possible));
    report_put(whole, "blocked_points", json_integer(score.blocked_points));
    return whole;
}

/* ---- files ---- */

/* folder_of - the folder that holds a path, with the slash; "" for the current one. owns: the
 * caller */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return format_or_fault("%.*s", slash ? (int)(slash - path + 1) : 0, path);
}

/* open_beside - a new file beside the path, to become it by renaming. name: set to its path */
static FILE *open_beside(const char *path, char **name)
{
    char *folder = folder_of(path);
    *name = format_or_fault("%s.grade-XXXXXX", folder);
    free(folder);
    int fd = mkstemp(*name);
    if (fd < 0)
        return NULL;
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    return fdopen(fd, "w");
}

/* write_whole - errors: -1 with errno */
static int write_whole(const char *path, const json_t *content)
{
    char *name;
    FILE *file = open_beside(path, &name);
    bool written = file &&
                   json_dumpf(content, file, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0 &&
                   fputc('\n', file) != EOF;
    written = file && fclose(file) == 0 && written && rename(name, path) == 0;
    int code = errno;
    if (!written && file)
        unlink(name);
    free(name);
    errno = code;
    return written ? 0 : -1;
}

/* create_folders - those on the way to the last slash of the path. errors: -1 with errno */
static int create_folders(const char *path)
{
    char *copy = format_or_fault("%s", path);
    int result = 0;
    for (char *c = copy + 1; result == 0 && *c; c++) {
        if (*c != '/' || c[-1] == '/')
            continue;
        *c = '\0';
        result = mkdir(copy, 0777) < 0 && errno != EEXIST ? -1 : 0;
        *c = '/';
    }
    free(copy);
    return result;
}

/* check_target - errors: -1, with why no report can be put there */
static int check_target(const char *path, const char **why)
{
    struct stat info;
    char *name;
    *why = NULL;
    if (path[strlen(path) - 1] == '/' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        *why = "is a folder";
    else if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        *why = "is not a regular file";
    else if (create_folders(path) < 0 || (access(path, W_OK) < 0 && errno != ENOENT))
        *why = strerror(errno);
    if (*why)
        return -1;
    FILE *file = open_beside(path, &name);
    if (file) {
        unlink(name);
        fclose(file);
    } else {
        *why = strerror(errno);
    }
    free(name);
    return *why ? -1 : 0;
}

static int create_logs(const char *folder, const char **why)
{
    struct stat info;
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        *why = strerror(errno);
    else if (lstat(folder, &info) < 0 || !S_ISDIR(info.st_mode))
        *why = "is not a folder";
    else if (access(folder, W_OK | X_OK) < 0)
        *why = strerror(errno);
    return *why ? -1 : 0;
}

/* Files that this program did not make stay. */
static void remove_former_logs(const struct report *report)
{
    const struct criterion *const *all;
    int count = rubric_all(&all);
    for (int i = 0; i < count; i++) {
        char *log = report_log(report, all[i]->id);
        unlink(log);
        free(log);
    }
}

static int refuse_path(const char *path, const char *why, char **problem)
{
    char *clean = line_or_fault(path);
    *problem = format_or_fault("--output '%s': %s", clean, why);
    free(clean);
    return -1;
}

int report_open(struct report *report, const char *path, char **problem)
{
    const char *why = NULL;
    *report = (struct report){0};
    if (check_target(path, &why) < 0)
        return refuse_path(path, why, problem);
    size_t length = strlen(path);
    if (length > 5 && strcmp(path + length - 5, ".json") == 0)
        length -= 5;
    report->logs = format_or_fault("%.*s-logs", (int)length, path);
    if (create_logs(report->logs, &why) < 0) {
        refuse_path(report->logs, why, problem);
        report_close(report);
        return -1;
    }
    char *logs = realpath(report->logs, NULL);
    if (logs) {
        free(report->logs);
        report->logs = logs;
    }
    report->path = realpath(path, NULL);
    if (!report->path)
        report->path = format_or_fault("%s", path);
    remove_former_logs(report);
    return 0;
}

char *report_log(const struct report *report, const char *id)
{
    return format_or_fault("%s/%s.log", report->logs, id);
}

void report_begin(struct report *report, json_t *head, const struct run *run)
{
    report->head = head;
    report->own = access(report->path, F_OK) < 0;
    report_update(report, run, "running", NULL);
}

/* has_news - whether there is more to tell than that a run was begun */
static bool has_news(const struct run *run, const char *state)
{
    struct score score = score_of(run);
    return score.passed + score.failed > 0 || strcmp(state, "complete") == 0;
}

void report_update(struct report *report, const struct run *run, const char *state,
                   const char *detail)
{
    if (!report->own && !has_news(run, state))
        return;
    json_t *whole = report_json(report, run, state, detail);
    report->own = true;
    free(report->broken);
    report->broken = NULL;
    if (write_whole(report->path, whole) < 0)
        report->broken = format_or_fault("cannot write %s: %s", report->path, strerror(errno));
    json_decref(whole);
}

void report_close(struct report *report)
{
    json_decref(report->head);
    free(report->path);
    free(report->logs);
    free(report->broken);
    *report = (struct report){0};
}

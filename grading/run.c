#define _GNU_SOURCE
#include "grading/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grading/build.h"
#include "grading/fault.h"
#include "grading/isolation.h"
#include "grading/judge.h"
#include "grading/workspace.h"
#include "runtime/scope.h"

/* A criterion process ends its subjects at the time-out and has then only to judge. One that is not
 * done so much later hangs. */
enum { JUDGING_SECONDS = 120, STOPPING_SECONDS = 1 };
enum { VERDICT_BYTES = 16 << 20, FOLDER_BYTES = 128 << 20 };

enum progress { WAITING, READY, RUNNING, DONE };

/* One criterion on its way to a result. */
struct trial {
    struct execution *execution;
    struct result *result;
    struct library *library;
    enum progress progress;
    char *folder;
    struct process process;
};

struct execution {
    struct run *run;
    void (*finished)(void *context, struct result *result);
    void *context;
    struct processes *all;
    enum isolation_level isolation;
    struct build builds[SUBMISSION_FILES]; /* those with libraries are in use */
    struct trial *trials;                  /* one for each of the run's results */
    char *fault;
};

static const char *const names[] = {
    [STATUS_PENDING] = "pending", [STATUS_PASSED] = "passed",   [STATUS_FAILED] = "failed",
    [STATUS_TIMEOUT] = "timeout", [STATUS_BLOCKED] = "blocked",
};

const char *status_name(enum status status)
{
    return names[status];
}

/* The first fault counts; the run ends soon after. */
static void execution_fault(struct execution *execution, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void execution_fault(struct execution *execution, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!execution->fault)
        execution->fault = vformat_or_fault(format, arguments);
    va_end(arguments);
}

/* ---- results ---- */

static void conclude(struct trial *trial, enum status status, const char *reason)
{
    struct result *result = trial->result;
    trial->progress = DONE;
    result->status = status;
    result->reason = reason ? format_or_fault("%s", reason) : NULL;
    trial->execution->finished(trial->execution->context, result);
}

static void conclude_without_running(struct trial *trial, const char *reason)
{
    trial->result->returncode = 1;
    conclude(trial, STATUS_FAILED, reason);
}

/* ---- the verdict of a criterion process ---- */

static int exit_code(const struct process *process)
{
    return WIFEXITED(process->wait_status) ? WEXITSTATUS(process->wait_status)
                                           : -WTERMSIG(process->wait_status);
}

/* The status that a verdict gives, or STATUS_PENDING if it is none. */
static enum status verdict_status(const json_t *verdict)
{
    const char *name = json_string_value(json_object_get(verdict, "status"));
    for (enum status status = STATUS_PASSED; name && status <= STATUS_TIMEOUT; status++)
        if (strcmp(name, names[status]) == 0)
            return status;
    return STATUS_PENDING;
}

/* Student code cannot make a criterion process fail: this is the machine's fault, or ours. */
static void no_verdict(struct trial *trial)
{
    struct process *process = &trial->process;
    const char *id = trial->result->criterion->id;
    if (process->start_error) {
        execution_fault(trial->execution, "criterion %s cannot be started: %s", id,
                        strerror(process->start_error));
        return;
    }
    char *output = capture_text(&process->output);
    output[strcspn(output, "\n")] = '\0';
    if (strncmp(output, FAULT_PREFIX, strlen(FAULT_PREFIX)) == 0)
        execution_fault(trial->execution, "criterion %s: %s", id, output + strlen(FAULT_PREFIX));
    else
        execution_fault(trial->execution, "criterion %s %s (exit status %d)%s%s", id,
                        process->late ? "hangs" : "gave no verdict", exit_code(process),
                        *output ? ": " : "", output);
    free(output);
}

static void trial_ended(struct process *process)
{
    struct trial *trial = process->context;
    struct result *result = trial->result;
    json_t *verdict = json_loadb(process->data.head, process->data.head_bytes, 0, NULL);
    enum status status = verdict_status(verdict);
    result->seconds = process->seconds;
    result->returncode = exit_code(process);
    if (status == STATUS_PENDING) {
        no_verdict(trial);
    } else {
        const char *cause = json_string_value(json_object_get(verdict, "cause"));
        result->cause = cause ? format_or_fault("%s", cause) : NULL;
        result->measurements = json_incref(json_object_get(verdict, "measurements"));
        conclude(trial, status, json_string_value(json_object_get(verdict, "reason")));
    }
    json_decref(verdict);
    process_close(process);
    folder_remove(trial->folder);
}

/* ---- starting a criterion process ---- */

/* The log begins with what the compiler said; the criterion process adds the rest.
 * returns: a file that is open at its end, or NULL */
static FILE *log_begin(struct trial *trial)
{
    FILE *log = fopen(trial->result->log, "we");
    if (log && fputs(trial->library->build->log, log) >= 0 && fflush(log) == 0)
        return log;
    execution_fault(trial->execution, "cannot write %s: %s", trial->result->log, strerror(errno));
    if (log)
        fclose(log);
    return NULL;
}

const char *run_plugin(const struct run *run)
{
    if (strcmp(run->device, "cpu") == 0)
        return "";
    return scope_printf("%s/" BUILD_FOLDER "/%s.so", run->home, run->device);
}

/* It reads its library and the devices, not the checkout, nor what else is in the run's folder:
 * there are other libraries, with the functions that criteria supply. */
static struct enclosure trial_enclosure(const struct trial *trial)
{
    const struct run *run = trial->execution->run;
    return (struct enclosure){
        .level = trial->execution->isolation,
        .hidden = {run->home, run->folder},
        .shown = {trial->library->path, scope_printf("%s/runtime", run->home), run_plugin(run)},
        .writable = trial->folder,
        .writable_bytes = FOLDER_BYTES,
        .gpus = strcmp(run->device, "cuda") == 0,
    };
}

static int trial_exec(struct trial *trial, int log)
{
    SCOPE;
    const struct run *run = trial->execution->run;
    struct enclosure enclosure = trial_enclosure(trial);
    bool dies_whole = enclosure.level == ISOLATION_NAMESPACES; /* a namespace with its first */
    const char *executable = system_executable();
    const char *arguments[CRITERION_ARGUMENTS + 1] = {
        "grade-criterion",
        [CRITERION_EXECUTABLE] = executable,
        [CRITERION_ID] = trial->result->criterion->id,
        [CRITERION_DEVICE] = run->device,
        [CRITERION_SEED] = scope_printf("%ju", (uintmax_t)run->seed),
        [CRITERION_TIMEOUT] = scope_printf("%.17g", run->timeout_s),
        [CRITERION_PLUGIN] = run_plugin(run),
        [CRITERION_LIBRARY] = trial->library->path,
        [CRITERION_FOLDER] = trial->folder,
        [CRITERION_SANITIZER] = run->sanitizer ? run->sanitizer : "",
        [CRITERION_ISOLATION] = isolation_name(enclosure.level),
    };
    trial->process = (struct process){
        .program = executable,
        .arguments = arguments,
        .folder = trial->folder,
        .data_limit = VERDICT_BYTES,
        .descriptors = {log},
        .enclosure = &enclosure,
        .limits = {.wall_s = run->timeout_s + JUDGING_SECONDS,
                   .late_signal = dies_whole ? 0 : SIGTERM,
                   .grace_s = STOPPING_SECONDS},
        .ended = trial_ended,
        .context = trial,
    };
    int error = process_start(trial->execution->all, &trial->process);
    trial->process.enclosure = NULL;
    return error;
}

static void trial_start(struct trial *trial)
{
    const char *id = trial->result->criterion->id;
    trial->folder = format_or_fault("%s/run-%s", trial->execution->run->folder, id);
    trial->progress = RUNNING;
    FILE *log = log_begin(trial);
    if (!log)
        return;
    int error = mkdir(trial->folder, 0700) < 0 ? errno : trial_exec(trial, fileno(log));
    fclose(log);
    if (error)
        execution_fault(trial->execution, "criterion %s cannot be started: %s", id,
                        strerror(error));
}

/* ---- which may start ---- */

static int trials_with(const struct execution *execution, enum progress progress)
{
    int n = 0;
    for (int i = 0; i < execution->run->count; i++)
        n += execution->trials[i].progress == progress;
    return n;
}

static bool is_correctness_left(const struct execution *execution)
{
    for (int i = 0; i < execution->run->count; i++)
        if (execution->trials[i].progress != DONE &&
            !execution->trials[i].result->criterion->speedup)
            return true;
    return false;
}

/* A criterion of the same section that was not passed, or NULL. */
static const struct criterion *failed_in_section(const struct trial *trial)
{
    const struct run *run = trial->execution->run;
    for (int i = 0; i < run->count; i++) {
        const struct result *other = &run->results[i];
        if (!other->criterion->speedup &&
            strcmp(other->criterion->section, trial->result->criterion->section) == 0 &&
            (other->status == STATUS_FAILED || other->status == STATUS_TIMEOUT))
            return other->criterion;
    }
    return NULL;
}

/* A speedup is measured alone, after everything else. */
static void consider_speedup(struct trial *trial)
{
    if (is_correctness_left(trial->execution) || trials_with(trial->execution, RUNNING) > 0)
        return;
    const struct criterion *failed = failed_in_section(trial);
    if (!failed) {
        trial_start(trial);
        return;
    }
    char *reason =
        format_or_fault("not measured: a speedup counts only if every other criterion of "
                        "its section passed, and %s did not",
                        failed->id);
    conclude_without_running(trial, reason);
    free(reason);
}

static void start_what_can(struct execution *execution)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < execution->run->count && !execution->fault; i++) {
        struct trial *trial = &execution->trials[i];
        if (trial->progress != READY)
            continue;
        if (trial->result->criterion->speedup)
            consider_speedup(trial);
        else if (trials_with(execution, RUNNING) < (cpus > 1 ? cpus : 1))
            trial_start(trial);
    }
}

/* ---- builds ---- */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void library_finished(struct library *library)
{
    struct build *build = library->build;
    struct execution *execution = build->context;
    if (build->fault)
        execution_fault(execution, "%s", build->fault);
    for (int i = 0; i < execution->run->count && !execution->fault; i++) {
        struct trial *trial = &execution->trials[i];
        if (trial->library != library || trial->progress != WAITING)
            continue;
        trial->progress = READY;
        FILE *log = library->ready ? NULL : log_begin(trial);
        if (!log)
            continue;
        fclose(log);
        conclude_without_running(trial, build->reason);
    }
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The library that a criterion needs, among those of the build of its file. */
static struct library *library_for(struct execution *execution, const struct criterion *criterion)
{
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        struct build *build = &execution->builds[i];
        if (strcmp(build->file, criterion->file) != 0)
            continue;
        for (int k = 0; k < build->library_count; k++)
            if (is_same(build->libraries[k].supplied, criterion->supplied))
                return &build->libraries[k];
        if (build->library_count == BUILD_LIBRARIES)
            return NULL;
        build->libraries[build->library_count].supplied = criterion->supplied;
        return &build->libraries[build->library_count++];
    }
    return NULL;
}

static void plan_builds(struct execution *execution)
{
    struct run *run = execution->run;
    for (int i = 0; i < SUBMISSION_FILES; i++)
        execution->builds[i] = (struct build){
            .home = run->home,
            .source = run->sources[i],
            .file = file_name(run->sources[i]),
            .folder = format_or_fault("%s/build-%d", run->folder, i),
            .isolation = execution->isolation,
            .sanitizer = run->sanitizer ? run->sanitizer : "",
            .private = run->folder,
            .finished = library_finished,
            .context = execution,
        };
    for (int i = 0; i < run->count; i++) {
        struct trial *trial = &execution->trials[i];
        trial->execution = execution;
        trial->result = &run->results[i];
        trial->progress = trial->result->status == STATUS_PENDING ? WAITING : DONE;
        if (trial->progress == DONE)
            continue;
        trial->library = library_for(execution, trial->result->criterion);
        if (!trial->library)
            execution_fault(execution, "criterion %s asks for a file or function that is not known",
                            trial->result->criterion->id);
    }
}

static void start_builds(struct execution *execution)
{
    for (int i = 0; i < SUBMISSION_FILES && !execution->fault; i++) {
        struct build *build = &execution->builds[i];
        if (build->library_count == 0)
            continue;
        build_start(build, execution->all);
        if (build->fault)
            execution_fault(execution, "%s", build->fault);
    }
}

/* ---- the run ---- */

/* Nothing runs any more: what has no result by now would never have one. */
static void check_all_done(struct execution *execution)
{
    for (int i = 0; i < SUBMISSION_FILES; i++)
        if (execution->builds[i].fault)
            execution_fault(execution, "%s", execution->builds[i].fault);
    for (int i = 0; i < execution->run->count; i++)
        if (execution->trials[i].progress != DONE)
            execution_fault(execution, "criterion %s was not run",
                            execution->run->results[i].criterion->id);
}

static void release(struct execution *execution)
{
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        free((char *)execution->builds[i].folder);
        build_close(&execution->builds[i]);
    }
    for (int i = 0; i < execution->run->count; i++) {
        process_close(&execution->trials[i].process);
        free(execution->trials[i].folder);
    }
    free(execution->trials);
}

int run_criteria(struct run *run, void (*finished)(void *context, struct result *result),
                 void *context, const volatile bool *interrupted, char **fault)
{
    struct execution execution = {
        .run = run,
        .finished = finished,
        .context = context,
        .all = processes_new(),
        .isolation = isolation_probe(run->home, run->folder),
        .trials = alloc_or_fault(sizeof(struct trial) * (size_t)run->count),
    };
    plan_builds(&execution);
    start_builds(&execution);
    while (!execution.fault && !*interrupted) {
        start_what_can(&execution);
        if (!processes_running(execution.all)) {
            check_all_done(&execution);
            break;
        }
        processes_wait(execution.all);
    }
    processes_stop(execution.all);
    processes_free(execution.all);
    *fault = *interrupted ? NULL : execution.fault;
    if (*interrupted)
        free(execution.fault);
    int result = *interrupted || execution.fault ? -1 : 0;
    release(&execution);
    return result;
}

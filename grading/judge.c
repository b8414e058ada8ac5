#define _GNU_SOURCE
#include "grading/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/observations.h"
#include "grading/rubric.h"
#include "grading/run.h"
#include "runtime/plugin.h"

/* ---- what criterion.h offers ---- */

uint64_t judge_seed(const struct judge *j)
{
    return j->seed;
}

struct device judge_device(const struct judge *j, int rank)
{
    return j->device == DEVICE_CPU ? CPU : CUDA(rank);
}

const struct observations *judge_observations(const struct judge *j, int world_size, int rank)
{
    struct inhabitant *subject = worlds_find(j->worlds, world_size, rank);
    return subject ? subject->observations : NULL;
}

/* Student code chose what is under this name: only a regular file is looked at. */
const char *judge_file(struct judge *j, int world_size, int rank, const char *name)
{
    struct inhabitant *subject = worlds_find(j->worlds, world_size, rank);
    const char *path = subject ? scope_printf("%s/%s", subject->folder, name) : NULL;
    struct stat file;
    return path && lstat(path, &file) == 0 && S_ISREG(file.st_mode) ? path : NULL;
}

void judge_measured(struct judge *j, const char *key, json_t *value)
{
    if (!j->measurements)
        j->measurements = json_object();
    if (json_object_set_new(j->measurements, key, value) < 0)
        fault("out of memory");
}

/* ---- the verdict ---- */

/* The trusted half alone decides here. It has no excuse: if it cannot compute, that is a fault. */
static enum status judge(struct judge *j)
{
    bool passed = j->criterion->judge(j);
    if (error_occurred() || (!passed && !j->reason))
        fault("criterion %s cannot judge: %s", j->criterion->id,
              error_occurred() ? error_message(error_pending()) : "it gives no reason");
    return passed ? STATUS_PASSED : STATUS_FAILED;
}

static void write_log(const struct judge *j, const char *verdict)
{
    FILE *log = fdopen(CRITERION_LOG, "a");
    if (!log)
        fault("cannot write the log: %s", strerror(errno));
    for (int i = 0; i < j->worlds->count; i++)
        inhabitant_write(&j->worlds->at[i], log);
    fprintf(log, "---- %s%s%s\n", verdict, j->reason ? ": " : "", j->reason ? j->reason : "");
    if (fclose(log) != 0)
        fault("cannot write the log: %s", strerror(errno));
}

static void write_verdict(const struct judge *j, const char *verdict)
{
    json_t *object = json_pack("{s:s, s:s*, s:s*, s:O*}", "status", verdict, "reason", j->reason,
                               "cause", j->cause, "measurements", j->measurements);
    if (!object || json_dumpfd(object, PROCESS_DATA, JSON_COMPACT) < 0)
        fault("criterion %s cannot hand over its verdict", j->criterion->id);
    json_decref(object);
}

/* Reasons hold what student code said, which may be much. */
static void clean_reason(struct judge *j, const char *reason)
{
    if (!reason && !j->reason)
        return;
    char *clean = start_or_fault(reason ? reason : j->reason);
    free(j->reason);
    j->reason = clean;
}

/* The reason ends with the cause, so that it is read wherever the reason is. */
static void add_cause(struct judge *j)
{
    judge_diagnose(j);
    if (!j->cause)
        return;
    char *reason = format_or_fault("%s\n%s", j->reason, j->cause);
    free(j->reason);
    j->reason = reason;
}

enum status judge_decide(struct judge *j)
{
    const char *reason = NULL;
    enum status status = (enum status)worlds_outcome(j->worlds, &reason);
    if (status == STATUS_PENDING)
        status = judge(j);
    clean_reason(j, status == STATUS_PASSED ? NULL : reason);
    if (status != STATUS_PASSED)
        add_cause(j);
    return status;
}

/* ---- the role ---- */

static volatile bool told_to_stop;

static void on_stop(int signal)
{
    (void)signal;
    told_to_stop = true;
}

/* worlds_of - the subjects that the arguments ask for. Strings are borrowed from argv. */
static struct worlds worlds_of(int argc, char **argv)
{
    const struct criterion *criterion =
        argc == CRITERION_ARGUMENTS ? rubric_find(argv[CRITERION_ID]) : NULL;
    if (!criterion)
        fault("grade-criterion: wrong arguments");
    return (struct worlds){
        .criterion = criterion,
        .executable = argv[CRITERION_EXECUTABLE],
        .device = argv[CRITERION_DEVICE],
        .plugin = argv[CRITERION_PLUGIN],
        .library = argv[CRITERION_LIBRARY],
        .folder = argv[CRITERION_FOLDER],
        .seed = strtoull(argv[CRITERION_SEED], NULL, 10),
        .timeout_s = strtod(argv[CRITERION_TIMEOUT], NULL),
        .isolation = argv[CRITERION_ISOLATION],
        .sanitizer = argv[CRITERION_SANITIZER],
    };
}

int criterion_main(int argc, char **argv)
{
    fault_without_memory();
    struct worlds worlds = worlds_of(argc, argv);
    struct judge j = {
        .criterion = worlds.criterion,
        .seed = worlds.seed,
        .device = strcmp(worlds.device, "cpu") == 0 ? DEVICE_CPU : DEVICE_CUDA,
        .worlds = &worlds,
    };
    SCOPE;
    if (*worlds.plugin && plugin_load(worlds.plugin) < 0)
        fault("%s", error_message(error_pending()));
    isolation_protect();
    system_watch_parent(PROCESS_DATA);
    signal(SIGTERM, on_stop);
    bool observed = worlds_observe(&worlds, &told_to_stop);
    signal(SIGTERM, SIG_DFL);
    if (!observed)
        return 128 + SIGTERM;
    enum status status = judge_decide(&j);
    write_log(&j, status_name(status));
    write_verdict(&j, status_name(status));
    worlds_close(&worlds);
    free(j.reason);
    free(j.cause);
    json_decref(j.measurements);
    return status == STATUS_PASSED ? 0 : status == STATUS_TIMEOUT ? 124 : 1;
}

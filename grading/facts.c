#include "grading/facts.h"

#include <nettle/version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zip.h>

#ifndef USE_ACCELERATE
#include <cblas.h>
#endif

#include "grading/command.h"
#include "grading/isolation.h"
#include "grading/probe.h"
#include "grading/report.h"
#include "runtime/scope.h"

enum { COMPILER_MS = 10 * 1000 };

static json_t *timestamp_json(void)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_string(text);
}

static const char *compiler_name(void)
{
#ifdef __clang__
    return __VERSION__; /* "Clang 14.0.6" */
#else
    return "gcc " __VERSION__;
#endif
}

static void ask_compiler(void)
{
    SCOPE;
    struct command command = {0};
    command_add_compiler(&command);
    command_add(&command, "--version");
    execvp(command.at[0], (char *const *)command.at);
    _exit(1);
}

/* null if there is none; that is told when something must be compiled */
static json_t *student_compiler_json(void)
{
    char line[256] = "";
    line[probe(ask_compiler, line, sizeof line - 1, COMPILER_MS)] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return report_text(*line ? line : NULL);
}

static json_t *blas_json(void)
{
#ifdef USE_ACCELERATE
    return json_string("Accelerate");
#else
    return report_text(openblas_get_config());
#endif
}

/* "12.4"; null for none */
static json_t *cuda_version_json(int version)
{
    return version ? json_sprintf("%d.%d", version / 1000, version % 1000 / 10) : json_null();
}

static json_t *nccl_version_json(int version)
{
    return version ? json_sprintf("%d.%d.%d", version / 10000, version / 100 % 100, version % 100)
                   : json_null();
}

static json_t *versions_json(const struct utsname *machine, const struct gpus *gpus)
{
    json_t *versions = json_object();
    report_put(versions, "grade", json_string(GRADE_VERSION));
    report_put(versions, "compiler", report_text(compiler_name()));
    report_put(versions, "student_compiler", student_compiler_json());
    report_put(versions, "blas", blas_json());
    report_put(versions, "jansson", report_text(jansson_version_str()));
    report_put(versions, "libzip", report_text(zip_libzip_version()));
    report_put(versions, "nettle",
               json_sprintf("%d.%d", nettle_version_major(), nettle_version_minor()));
    report_put(versions, "cuda_driver", cuda_version_json(gpus->driver));
    report_put(versions, "cuda", cuda_version_json(gpus->toolkit));
    report_put(versions, "nccl", nccl_version_json(gpus->nccl));
    report_put(versions, "system",
               json_sprintf("%s %s %s", machine->sysname, machine->release, machine->machine));
    return versions;
}

static json_t *gpu_names_json(const struct gpus *gpus)
{
    json_t *names = json_array();
    for (int i = 0; i < gpus->count; i++)
        json_array_append_new(names, report_text(gpus->names[i]));
    return names;
}

static json_t *hashes_json(const struct submission *submission)
{
    json_t *hashes = json_object();
    for (int i = 0; i < SUBMISSION_FILES; i++)
        report_put(hashes, submission_names[i], json_string(submission->files[i].sha256));
    return hashes;
}

json_t *facts_json(const struct options *options, const struct run *run,
                   const struct submission *submission, const struct gpus *gpus)
{
    struct utsname machine;
    json_t *facts = json_object();
    uname(&machine);
    report_put(facts, "schema_version", json_integer(REPORT_SCHEMA_VERSION));
    report_put(facts, "timestamp_utc", timestamp_json());
    report_put(facts, "device", json_string(run->device));
    bool sanitized = run->sanitizer && *run->sanitizer; /* its speedups are other ones */
    report_put(facts, "official", json_boolean(!gpus->simulated && !sanitized));
    if (sanitized)
        report_put(facts, "sanitizer", json_string(run->sanitizer));
    report_put(facts, "host", report_text(machine.nodename));
    report_put(facts, "isolation",
               json_string(isolation_name(isolation_probe(run->home, run->folder))));
    report_put(facts, "gpu_names", gpu_names_json(gpus));
    report_put(facts, "versions", versions_json(&machine, gpus));
    report_put(facts, "submission", report_text(options->submission));
    report_put(facts, "source_sha256", hashes_json(submission));
    report_put(facts, "section", json_string(options->section));
    report_put(facts, "seed", json_integer((json_int_t)run->seed));
    report_put(facts, "timeout_seconds", json_real(run->timeout_s));
    return facts;
}

/* grade.c - the command, and the theory of operation.
 *
 * The executable has three roles, told apart by the name that it is started under:
 *
 *     grade ──▶ grade-criterion (trusted: computes what is right, decides)
 *                   └──▶ grade-subject, one per rank (untrusted: loads the student's file)
 *
 * This file is the first role. It reads the three student files once and copies them into a private
 * folder; lets run_criteria build them and run every selected criterion in fresh processes; writes
 * the report after each; prints a line for each. It never loads student code and never touches a
 * GPU.
 *
 * Three kinds of trouble never mix: a wrong command line or submission is told before anything runs
 * (EXIT_USAGE); a fault of the machine has its own line and status (EXIT_FAULT) and is never
 * scored; what student code does wrong is the result of a criterion. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grading/debug.h"
#include "grading/facts.h"
#include "grading/fault.h"
#include "grading/home.h"
#include "grading/interrupt.h"
#include "grading/options.h"
#include "grading/report.h"
#include "grading/sanitize.h"
#include "grading/score.h"
#include "grading/summary.h"
#include "grading/workspace.h"

/* What lasts as long as a run. */
struct grade {
    struct run run;
    struct report report;
    struct summary summary;
    char *home, *sources[SUBMISSION_FILES];
};

/* option: what the problem is with, or "" */
static int usage_error(const char *option, char *problem)
{
    fprintf(stderr, "grade: %s%s\n", option, problem);
    free(problem);
    return EXIT_USAGE;
}

static void simulate(const char *profile, struct gpus *gpus)
{
    profile = profile ? profile : "v100-nvlink";
    gpus_simulate(gpus, profile);
    if (setenv("SIM_PROFILE", profile, 1) < 0)
        fault("out of memory");
}

static void choose_device(struct grade *grade, const struct options *options, struct gpus *gpus)
{
    const char *wanted = options->device;
    *gpus = (struct gpus){0};
    if (strcmp(wanted, "sim") == 0)
        simulate(options->sim_profile, gpus);
    else if (strcmp(wanted, "cpu") != 0)
        gpus_probe(gpus);
    bool automatic = strcmp(wanted, "auto") == 0;
    grade->run.device = automatic ? (gpus_usable(gpus) ? "cuda" : "cpu") : wanted;
}

/* A result for every selected criterion: blocked at once where this machine lacks what it needs. */
static void prepare_results(struct grade *grade, const struct options *options,
                            const struct gpus *gpus)
{
    struct run *run = &grade->run;
    run->count = options->count;
    run->results = alloc_or_fault((size_t)run->count * sizeof *run->results);
    for (int i = 0; i < run->count; i++) {
        struct result *result = &run->results[i];
        result->criterion = options->selected[i];
        result->log = report_log(&grade->report, result->criterion->id);
        result->reason = gpus_block(gpus, run->device, result->criterion);
        if (options->measure && gpus_measurable(gpus, run->device, result->criterion)) {
            result->blocked = result->reason;
            result->reason = NULL;
        }
        result->status = result->reason ? STATUS_BLOCKED : STATUS_PENDING;
    }
}

static void prepare_run(struct grade *grade, const struct options *options,
                        const struct submission *submission)
{
    struct run *run = &grade->run;
    run->home = grade->home;
    run->seed = options->seed;
    run->sanitizer = options->sanitizer;
    run->timeout_s = options->timeout_s;
    run->folder = workspace_create();
    submission_write(submission, run->folder, grade->sources);
    for (int i = 0; i < SUBMISSION_FILES; i++)
        run->sources[i] = grade->sources[i];
}

static void prepare(struct grade *grade, const struct options *options,
                    const struct submission *submission)
{
    struct run *run = &grade->run;
    struct gpus gpus;
    choose_device(grade, options, &gpus);
    prepare_run(grade, options, submission);
    prepare_results(grade, options, &gpus);
    report_begin(&grade->report, facts_json(options, run, submission, &gpus), run);
    summary_begin(&grade->summary, stdout, options->color, options->quiet, run);
}

/* What was only measured earns nothing, and loses nothing. It is printed with the blocked ones. */
static void block_measured(struct result *result)
{
    free(result->reason);
    result->reason = result->blocked;
    result->blocked = NULL;
    result->status = STATUS_BLOCKED;
}

static void result_finished(void *context, struct result *result)
{
    struct grade *grade = context;
    if (result->blocked)
        block_measured(result);
    else
        summary_result(&grade->summary, result);
    report_update(&grade->report, &grade->run, "running", NULL);
}

_Noreturn static void end_in_fault(struct grade *grade, const char *why)
{
    report_update(&grade->report, &grade->run, "fault", why);
    workspace_remove();
    fault("%s", why);
}

static int say_interrupted(void)
{
    int signal = interrupt_signal();
    fprintf(stderr, "grade: ended by %s\n", interrupt_name(signal));
    return 128 + signal;
}

static int end_interrupted(struct grade *grade)
{
    report_update(&grade->report, &grade->run, "interrupted", interrupt_name(interrupt_signal()));
    return say_interrupted();
}

/* printed - returns: the exit status, if all that was printed could be */
static int printed(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        fault("cannot write to standard output: %s", strerror(errno));
    return status;
}

static int end_complete(struct grade *grade, const char *output)
{
    struct score score = score_of(&grade->run);
    for (int i = 0; i < grade->run.count; i++) {
        if (grade->run.results[i].status == STATUS_BLOCKED)
            summary_result(&grade->summary, &grade->run.results[i]);
    }
    report_update(&grade->report, &grade->run, "complete", NULL);
    if (grade->report.broken)
        end_in_fault(grade, grade->report.broken);
    summary_end(&grade->summary, &grade->run, output);
    return printed(score_status(&score));
}

static int run_and_report(struct grade *grade, const char *output)
{
    char *why = NULL;
    if (run_criteria(&grade->run, result_finished, grade, &interrupt_flag, &why) == 0)
        return end_complete(grade, output);
    if (why)
        end_in_fault(grade, why);
    return end_interrupted(grade);
}

static void release(struct grade *grade)
{
    for (int i = 0; i < grade->run.count; i++) {
        struct result *result = &grade->run.results[i];
        free(result->reason);
        free(result->cause);
        free(result->blocked);
        free(result->log);
        json_decref(result->measurements);
    }
    free(grade->run.results);
    for (int i = 0; i < SUBMISSION_FILES; i++)
        free(grade->sources[i]);
    free(grade->home);
    report_close(&grade->report);
}

/* read_submission - as the build that is asked for. returns: 0, or the exit status */
static int read_submission(struct grade *grade, const struct options *options, char **argv,
                           struct submission *submission)
{
    char *problem = NULL;
    if (*options->sanitizer && sanitize_become(options->sanitizer, grade->home, argv, &problem) < 0)
        return usage_error("", problem);
    if (submission_read(options->submission, grade->home, submission, &problem) < 0)
        return usage_error(options->submission ? "--submission " : "", problem);
    return 0;
}

/* open_report - where it replaces nothing of the submission. returns: 0, or the exit status */
static int open_report(struct grade *grade, const struct options *options)
{
    char *problem = NULL;
    if (submission_includes(options->submission, grade->home, options->output))
        return usage_error("--output ",
                           format_or_fault("%s: is part of the submission", options->output));
    return report_open(&grade->report, options->output, &problem) < 0 ? usage_error("", problem)
                                                                      : 0;
}

static int grade_submission(const struct options *options, char **argv)
{
    struct grade grade = {.home = home_find()};
    struct submission submission = {0};
    int status = read_submission(&grade, options, argv, &submission);
    if (!status)
        status = open_report(&grade, options);
    if (!status) {
        interrupt_watch();
        prepare(&grade, options, &submission);
        status = run_and_report(&grade, options->output);
    }
    submission_free(&submission);
    release(&grade);
    return status;
}

/* why_not_debugged - owns: the caller. returns: NULL if it can be */
static char *why_not_debugged(struct grade *grade, const struct options *options,
                              const char *debugger)
{
    struct gpus gpus;
    if (!debugger)
        return format_or_fault("--debug: no debugger is found: install gdb (on macOS lldb comes "
                               "with xcode-select --install)");
    choose_device(grade, options, &gpus);
    if (gpus_measurable(&gpus, grade->run.device, options->debugged))
        return NULL;
    char *block = gpus_block(&gpus, grade->run.device, options->debugged);
    char *why = block ? format_or_fault("--debug %s: %s (--device sim has two)",
                                        options->debugged->id, block)
                      : NULL;
    free(block);
    return why;
}

static int debug_submission(const struct options *options, char **argv)
{
    struct grade grade = {.home = home_find()};
    struct submission submission;
    const char *debugger = debug_find();
    char *why_not = why_not_debugged(&grade, options, debugger);
    int status =
        why_not ? usage_error("", why_not) : read_submission(&grade, options, argv, &submission);
    if (!status) {
        interrupt_watch();
        prepare_run(&grade, options, &submission);
        submission_free(&submission);
        status = debug_criterion(&grade.run, options->debugged, debugger, &interrupt_flag);
        if (status < 0)
            status = say_interrupted();
    }
    release(&grade);
    return status;
}

static int command_main(int argc, char **argv)
{
    struct options options;
    char *problem = NULL;
    fault_without_memory();
    if (options_parse(argc, argv, &options, &problem) < 0)
        return usage_error("", problem);
    switch (options.action) {
    case ACTION_HELP:
        options_help(stdout);
        return printed(0);
    case ACTION_LIST:
        options_list(stdout, &options);
        return printed(0);
    case ACTION_VERSION:
        puts("grade " GRADE_VERSION);
        return printed(0);
    case ACTION_DEBUG:
        return debug_submission(&options, argv);
    case ACTION_GRADE:
        break;
    }
    return grade_submission(&options, argv);
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *role = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    if (strcmp(role, "grade-criterion") == 0)
        return criterion_main(argc, argv);
    if (strcmp(role, "grade-subject") == 0)
        return subject_main(argc, argv);
    return command_main(argc, argv);
}

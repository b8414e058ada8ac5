#define _GNU_SOURCE
#include "grading/debug.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grading/build.h"
#include "grading/command.h"
#include "grading/fault.h"
#include "grading/isolation.h"
#include "grading/submission.h"
#include "grading/worlds.h"
#include "runtime/scope.h"

/* Time-outs are for those who do not look. */
static const double for_ever = 1e6;

static void add_two(struct command *command, const char *option, const char *value)
{
    command_add(command, option);
    command_add(command, value);
}

const char *debug_find(void)
{
    static const char *const debuggers[] = {"gdb", "lldb"};
    for (int i = 0; i < 2; i++) {
        char *path = command_find(debuggers[i]);
        free(path);
        if (path)
            return debuggers[i];
    }
    return NULL;
}

/* ---- the student's library ---- */

static const char *source_of(const struct run *run, const struct criterion *criterion)
{
    for (int i = 0; i < SUBMISSION_FILES; i++)
        if (strcmp(submission_names[i], criterion->file) == 0)
            return run->sources[i];
    fault("criterion %s asks for a file that is not known", criterion->id);
}

static void library_finished(struct library *library)
{
    (void)library;
}

/* returns: false if it does not compile, or if *interrupted */
static bool build_library(struct build *build, const volatile bool *interrupted)
{
    struct processes *all = processes_new();
    build_start(build, all);
    while (processes_running(all) && !*interrupted)
        processes_wait(all);
    processes_stop(all);
    processes_free(all);
    if (build->fault && !*interrupted)
        fault("%s", build->fault);
    bool ready = build->libraries[0].ready && !*interrupted;
    if (ready)
        fputs(build->log, stderr); /* there is no log for its warnings */
    else if (!*interrupted)
        fprintf(stderr, "grade: %s\n", build->reason);
    return ready;
}

/* ---- the debugger ---- */

/* The role is told by the name that a program is started under; debuggers take it from the path. */
static const char *make_role(const char *folder)
{
    const char *role = scope_printf("%s/grade-subject", folder);
    char *executable = realpath(system_executable(), NULL);
    if (!executable || symlink(executable, role) < 0)
        fault("cannot make %s: %s", role, strerror(errno));
    free(executable);
    return role;
}

static void gdb_command(struct command *command, const struct criterion *criterion,
                        const char *sources)
{
    command_add(command, "gdb");
    command_add(command, "-q");
    add_two(command, "-d", sources);
    add_two(command, "-iex", "set breakpoint pending on");
    for (int i = 0; i < CALLS_MAX && criterion->calls[i]; i++)
        add_two(command, "-ex",
                scope_printf("break assignment/%s:%s", criterion->file, criterion->calls[i]));
    add_two(command, "-ex", "run");
    command_add(command, "--args");
}

static void lldb_command(struct command *command, const struct criterion *criterion,
                         const char *sources)
{
    command_add(command, "lldb");
    add_two(command, "-o", scope_printf("settings set target.source-map . \"%s\"", sources));
    for (int i = 0; i < CALLS_MAX && criterion->calls[i]; i++)
        add_two(command, "-o",
                scope_printf("breakpoint set --file %s --name %s", criterion->file,
                             criterion->calls[i]));
    add_two(command, "-o", "run");
    command_add(command, "--");
}

/* It has the user's environment, but the subject inherits that, and is to compute in one thread as
 * at other times. What a sanitizer finds stops it where it is found. Nobody needs the system
 * libraries' debug information from the network. */
static void prepare_environment(void)
{
    static const char *const sanitizers[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"};
    for (int i = 0; i < 3; i++)
        setenv(sanitizers[i], "abort_on_error=1", 0);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    unsetenv("DEBUGINFOD_URLS");
}

/* As with system(3): what is typed there means the debugger, which is in our process group. */
static void leave_keyboard(void)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
}

static void announce(const struct worlds *worlds, int world_size, const char *debugger)
{
    printf("%s: rank 0 of %d under %s, on %s, with --seed %ju", worlds->criterion->id, world_size,
           debugger, worlds->device, (uintmax_t)worlds->seed);
    if (world_size > 1)
        printf("; the other%s for it", world_size > 2 ? "s wait" : " waits");
    puts("\nNothing is scored, and no report is written.");
    fflush(stdout);
}

static int exit_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* returns: as debug_criterion */
static int run_worlds(struct worlds *worlds, const volatile bool *interrupted)
{
    bool ended = worlds_observe(worlds, interrupted);
    int status = ended ? exit_status(worlds->at[0].process.wait_status) : -1;
    worlds_close(worlds);
    return status;
}

static int run_library(const struct run *run, const struct build *build,
                       const struct criterion *criterion, const char *debugger,
                       const volatile bool *interrupted)
{
    struct criterion first_world = *criterion;
    first_world.worlds[1] = 0;
    struct command command = {.n = 0};
    if (strcmp(debugger, "gdb") == 0)
        gdb_command(&command, criterion, build->folder);
    else
        lldb_command(&command, criterion, build->folder);
    command_add(&command, make_role(run->folder));
    struct worlds worlds = {
        .criterion = &first_world,
        .executable = system_executable(),
        .device = run->device,
        .plugin = run_plugin(run),
        .library = build->libraries[0].path,
        .folder = run->folder,
        .seed = run->seed,
        .timeout_s = for_ever,
        .isolation = isolation_name(ISOLATION_PROCESS),
        .sanitizer = run->sanitizer,
        .meeting = scope_printf("%s/meeting", run->folder),
        .debugger = command.at,
    };
    announce(&worlds, criterion->worlds[0] ? criterion->worlds[0] : 1, debugger);
    prepare_environment();
    leave_keyboard();
    return run_worlds(&worlds, interrupted);
}

int debug_criterion(const struct run *run, const struct criterion *criterion, const char *debugger,
                    const volatile bool *interrupted)
{
    SCOPE;
    struct build build = {
        .home = run->home,
        .source = source_of(run, criterion),
        .file = criterion->file,
        .folder = scope_printf("%s/build", run->folder),
        .private = run->folder,
        .isolation = isolation_probe(run->home, run->folder),
        .sanitizer = run->sanitizer,
        .for_debugger = true,
        .libraries = {{.supplied = criterion->supplied}},
        .library_count = 1,
        .finished = library_finished,
    };
    bool built = build_library(&build, interrupted);
    int status = *interrupted ? -1 : 1;
    if (built)
        status = run_library(run, &build, criterion, debugger, interrupted);
    build_close(&build);
    return status;
}

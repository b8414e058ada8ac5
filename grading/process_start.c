/* process_start.c - from a plan to a running child: pipes, environment, fork, limits, exec. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/process_internal.h"

/* ---- the child, between fork and exec: nothing that allocates or locks ---- */

static void limit(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now;
    if (getrlimit(resource, &now) < 0)
        return;
    struct rlimit wanted = {.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max,
                            .rlim_max = hard < now.rlim_max ? hard : now.rlim_max};
    setrlimit(resource, &wanted);
}

static void limit_resources(const struct process_limits *limits)
{
    limit(RLIMIT_CORE, 0, 0);
    if (limits->cpu_s)
        limit(RLIMIT_CPU, limits->cpu_s, limits->cpu_s + 5);
    if (limits->file_bytes)
        limit(RLIMIT_FSIZE, limits->file_bytes, limits->file_bytes);
    if (limits->memory_bytes)
        limit(RLIMIT_AS, limits->memory_bytes, limits->memory_bytes);
    if (limits->data_bytes)
        limit(RLIMIT_DATA, limits->data_bytes, limits->data_bytes);
    if (limits->tasks)
        limit(RLIMIT_NPROC, limits->tasks, limits->tasks);
    if (limits->descriptors)
        limit(RLIMIT_NOFILE, limits->descriptors, limits->descriptors);
}

static void reset_signals(void)
{
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

enum { CHILD_DESCRIPTORS = PROCESS_DATA + 1 + PROCESS_DESCRIPTORS, CHILD_ALL };

/* Make from[i] descriptor i, and the last close itself on exec. No other stays open. Moved out of
 * the way first, so that none is overwritten before its turn. */
static bool arrange_descriptors(int from[CHILD_ALL])
{
    for (int i = 0; i < CHILD_ALL; i++) {
        int moved = fcntl(from[i], F_DUPFD, CHILD_ALL);
        if (moved < 0)
            return false;
        from[i] = moved;
    }
    for (int i = 0; i < CHILD_ALL; i++)
        if (dup2(from[i], i) < 0)
            return false;
    system_close_from(CHILD_ALL);
    return fcntl(CHILD_DESCRIPTORS, F_SETFD, FD_CLOEXEC) >= 0;
}

_Noreturn static void give_up(int error_to)
{
    int error = errno;
    _exit(write(error_to, &error, sizeof error) == (ssize_t)sizeof error ? 127 : 126);
}

/* A parent that went before it could be tied to us (system_confine) reads no more. */
static bool is_parent_gone(void)
{
    struct pollfd reader = {.fd = CHILD_DESCRIPTORS, .events = POLLOUT};
    return poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR);
}

_Noreturn static void become(const struct process *process, char **environment, int output_to,
                             int data_to, int error_to)
{
    reset_signals();
    if (!process->terminal)
        setsid();
    int null = open("/dev/null", O_RDWR);
    int from[CHILD_ALL] = {null, output_to, output_to, data_to < 0 ? null : data_to};
    for (int i = 0; i <= 2 && process->terminal; i++)
        from[i] = i;
    for (int i = 0; i < PROCESS_DESCRIPTORS; i++)
        from[PROCESS_DATA + 1 + i] = process->descriptors[i] ? process->descriptors[i] : null;
    from[CHILD_DESCRIPTORS] = error_to;
    if (null < 0 || !arrange_descriptors(from))
        give_up(from[CHILD_DESCRIPTORS]);
    system_confine();
    if (is_parent_gone())
        _exit(127);
    if (!isolation_enter(process->enclosure) || (!process->terminal && chdir(process->folder) < 0))
        give_up(CHILD_DESCRIPTORS);
    limit_resources(&process->limits);
    extern char **environ;
    if (!process->terminal)
        environ = environment;
    execvp(process->program, (char *const *)process->arguments);
    give_up(CHILD_DESCRIPTORS);
}

/* ---- starting ---- */

/* What a child keeps of our environment: where programs and libraries are, which GPUs it may use
 * or simulate, how a sanitizer is to behave. */
static const char *const kept[] = {"PATH",        "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
                                   "SIM_PROFILE", "ASAN_OPTIONS",    "UBSAN_OPTIONS",
                                   "TSAN_OPTIONS"};
static const char *const fixed[] = {"LANG=C", "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"};
enum {
    KEPT = sizeof kept / sizeof kept[0],
    FIXED = sizeof fixed / sizeof fixed[0],
    ENVIRONMENT = KEPT + FIXED + 3
};

static void environment_make(char *environment[ENVIRONMENT], const char *folder)
{
    int n = 0;
    for (size_t i = 0; i < KEPT; i++) {
        const char *value = getenv(kept[i]);
        if (value)
            environment[n++] = format_or_fault("%s=%s", kept[i], value);
    }
    for (size_t i = 0; i < FIXED; i++)
        environment[n++] = format_or_fault("%s", fixed[i]);
    environment[n++] = format_or_fault("HOME=%s", folder);
    environment[n++] = format_or_fault("TMPDIR=%s", folder);
    environment[n] = NULL;
}

static void environment_free(char *environment[ENVIRONMENT])
{
    for (int i = 0; environment[i]; i++)
        free(environment[i]);
}

void process_close_pipe(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* A pipe whose ends no child inherits by accident, and whose reading end does not block. */
static bool pipe_open(int *from, int *to)
{
    int ends[2];
    if (pipe(ends) < 0)
        return false;
    *from = ends[0];
    *to = ends[1];
    fcntl(*from, F_SETFD, FD_CLOEXEC);
    fcntl(*to, F_SETFD, FD_CLOEXEC);
    fcntl(*from, F_SETFL, O_NONBLOCK);
    return true;
}

static int fork_child(struct process *process, int *output_to, int *data_to, int *error_to)
{
    if (!pipe_open(&process->output_from, output_to) ||
        !pipe_open(&process->error_from, error_to) ||
        (process->data_limit && !pipe_open(&process->data_from, data_to)))
        return errno;
    char *environment[ENVIRONMENT];
    environment_make(environment, process->folder);
    process->pid = isolation_fork(process->enclosure);
    int error = errno;
    if (process->pid == 0)
        become(process, environment, *output_to, *data_to, *error_to);
    environment_free(environment);
    return process->pid < 0 ? error : 0;
}

void process_close_pipes(struct process *process)
{
    process_close_pipe(&process->output_from);
    process_close_pipe(&process->data_from);
    process_close_pipe(&process->error_from);
}

int process_fork(struct process *process)
{
    int output_to = -1, data_to = -1, error_to = -1;
    process->output_from = process->data_from = process->error_from = -1;
    int error = fork_child(process, &output_to, &data_to, &error_to);
    process_close_pipe(&output_to);
    process_close_pipe(&data_to);
    process_close_pipe(&error_to);
    if (error)
        process_close_pipes(process);
    return error;
}

#define _GNU_SOURCE
#include "grading/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/process_internal.h"
#include "runtime/clock.h"

/* After its end no more than this is read from a child's pipes: a pipe holds at most that much of
 * what it wrote, and what fled from it may be writing still. */
enum { DRAIN_BYTES = 1 << 20 };

/* How long to wait without looking whether a child has ended. */
enum { LOOK_SECONDS = 2 };

struct processes {
    struct process *first; /* those that run */
};

/* ---- signals wake the loop ---- */

static const int wakers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
enum { WAKERS = sizeof wakers / sizeof wakers[0] };

/* The one place for what a signal handler must find. */
static struct {
    int to, from;
    struct sigaction former[WAKERS];
} wake = {.to = -1, .from = -1};

static void call_former(const struct sigaction *former, int signal, siginfo_t *info, void *context)
{
    if (former->sa_flags & SA_SIGINFO)
        former->sa_sigaction(signal, info, context);
    else if (former->sa_handler != SIG_DFL && former->sa_handler != SIG_IGN)
        former->sa_handler(signal);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    for (int i = 0; i < WAKERS; i++)
        if (wakers[i] == signal)
            call_former(&wake.former[i], signal, info, context);
    ssize_t ignored = write(wake.to, "", 1); /* one that is lost costs LOOK_SECONDS */
    (void)ignored;
    errno = saved;
}

static void wake_open(void)
{
    int ends[2];
    if (pipe(ends) < 0)
        fault("cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    wake.from = ends[0];
    wake.to = ends[1];
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int i = 0; i < WAKERS; i++) {
        sigaction(wakers[i], NULL, &wake.former[i]);
        bool has_handler =
            (wake.former[i].sa_flags & SA_SIGINFO) ||
            (wake.former[i].sa_handler != SIG_DFL && wake.former[i].sa_handler != SIG_IGN);
        if (wakers[i] == SIGCHLD || has_handler)
            sigaction(wakers[i], &action, NULL);
    }
}

static void wake_close(void)
{
    for (int i = 0; i < WAKERS; i++)
        sigaction(wakers[i], &wake.former[i], NULL);
    close(wake.from);
    close(wake.to);
    wake.from = wake.to = -1;
}

struct processes *processes_new(void)
{
    wake_open();
    system_adopt_orphans();
    return alloc_or_fault(sizeof(struct processes));
}

void processes_free(struct processes *all)
{
    system_kill_orphans(NULL, 0);
    wake_close();
    free(all);
}

/* ---- starting ---- */

int process_start(struct processes *all, struct process *process)
{
    int error = process_fork(process);
    if (error)
        return error;
    capture_open(&process->output);
    capture_open_data(&process->data, process->data_limit);
    process->started = seconds_now();
    process->deadline = process->started + process->limits.wall_s;
    process->next = all->first;
    all->first = process;
    return 0;
}

void process_close(struct process *process)
{
    capture_close(&process->output);
    capture_close(&process->data);
}

/* ---- waiting ---- */

int processes_running(const struct processes *all)
{
    int n = 0;
    for (const struct process *p = all->first; p; p = p->next)
        n++;
    return n;
}

/* Take what is there. returns: bytes read, 0 when there is nothing (any more) */
static size_t take(int *from, struct capture *into)
{
    char bytes[64 << 10];
    ssize_t n = *from < 0 ? -1 : read(*from, bytes, sizeof bytes);
    if (n == 0)
        process_close_pipe(from);
    if (n <= 0)
        return 0;
    capture_add(into, bytes, (size_t)n);
    return (size_t)n;
}

static void drain(int *from, struct capture *into)
{
    size_t n, all = 0;
    while (all < DRAIN_BYTES && (n = take(from, into)) > 0)
        all += n;
}

static void kill_orphans(struct processes *all)
{
    int n = 0;
    pid_t *known = alloc_or_fault(sizeof *known * (size_t)(processes_running(all) + 1));
    for (const struct process *p = all->first; p; p = p->next)
        known[n++] = p->pid;
    system_kill_orphans(known, n);
    free(known);
}

static void kill_all_of(const struct process *process)
{
    kill(-process->pid, SIGKILL);
    kill(process->pid, SIGKILL);
}

static bool has_used_up(const struct process *process, const struct rusage *usage)
{
    const struct timeval *user = &usage->ru_utime, *system = &usage->ru_stime;
    double seconds =
        (double)(user->tv_sec + system->tv_sec) + 1e-6 * (double)(user->tv_usec + system->tv_usec);
    return process->limits.cpu_s && seconds > (double)process->limits.cpu_s - 0.1;
}

/* Reap it, and tell whose doing its end was. */
static void reap(struct process *process)
{
    struct rusage usage = {0};
    while (wait4(process->pid, &process->wait_status, 0, &usage) < 0 && errno == EINTR)
        ;
    process->seconds = seconds_now() - process->started;
    int signal = WIFSIGNALED(process->wait_status) ? WTERMSIG(process->wait_status) : 0;
    bool was_killed = signal == SIGKILL;
    process->stopped = process->killed && process->hurried && was_killed;
    process->late = process->warned || (process->killed && !process->hurried && was_killed) ||
                    ((was_killed || signal == SIGXCPU) && has_used_up(process, &usage));
}

/* It has ended or been killed: nothing of it may survive, and what it wrote is read to the end. Its
 * group is killed before it is reaped, while the number cannot mean another. */
static void finish(struct processes *all, struct process *process)
{
    kill_all_of(process);
    reap(process);
    struct process **link = &all->first;
    while (*link != process)
        link = &(*link)->next;
    *link = process->next;
    kill_orphans(all);
    drain(&process->output_from, &process->output);
    drain(&process->data_from, &process->data);
    if (read(process->error_from, &process->start_error, sizeof(int)) != (ssize_t)sizeof(int))
        process->start_error = 0;
    process_close_pipes(process);
}

static bool has_ended(const struct process *process)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == process->pid;
}

/* The time is over: say so first if that was asked for. returns: true if it is to be killed */
static bool is_due(struct process *process, double now)
{
    if (now < process->deadline)
        return false;
    if (process->hurried || process->warned || !process->limits.late_signal)
        return true;
    process->warned = true;
    process->deadline += process->limits.grace_s;
    system_signal_threads(process->pid, process->limits.late_signal);
    return false;
}

/* All of them are halted before the first is killed: else those that lose a peer are found doing
 * something else than what they had been waiting for. */
static void kill_due(struct processes *all)
{
    double now = seconds_now();
    for (struct process *p = all->first; p; p = p->next)
        if (!has_ended(p) && is_due(p, now)) {
            p->killed = true;
            kill(p->pid, SIGSTOP);
        }
    for (struct process *p = all->first; p; p = p->next)
        if (p->killed)
            kill_all_of(p);
}

static struct process *next_ended(struct processes *all)
{
    for (struct process *p = all->first; p; p = p->next)
        if (p->killed || has_ended(p))
            return p;
    return NULL;
}

static int milliseconds_left(const struct processes *all)
{
    double left = LOOK_SECONDS;
    for (const struct process *p = all->first; p; p = p->next)
        if (p->deadline - seconds_now() < left)
            left = p->deadline - seconds_now();
    return left < 0 ? 0 : (int)(left * 1e3) + 1;
}

static void wait_for_events(struct processes *all)
{
    nfds_t n = 0;
    struct pollfd *events =
        alloc_or_fault(sizeof *events * (size_t)(2 * processes_running(all) + 1));
    events[n++] = (struct pollfd){.fd = wake.from, .events = POLLIN};
    for (struct process *p = all->first; p; p = p->next) {
        events[n++] = (struct pollfd){.fd = p->output_from, .events = POLLIN};
        events[n++] = (struct pollfd){.fd = p->data_from, .events = POLLIN};
    }
    poll(events, n, milliseconds_left(all));
    free(events);
}

void processes_wait(struct processes *all)
{
    wait_for_events(all);
    char signals[64];
    while (read(wake.from, signals, sizeof signals) == (ssize_t)sizeof signals)
        ;
    for (struct process *p = all->first; p; p = p->next) {
        take(&p->output_from, &p->output);
        take(&p->data_from, &p->data);
    }
    kill_due(all);
    struct process *p;
    while ((p = next_ended(all))) {
        finish(all, p);
        if (p->ended)
            p->ended(p);
    }
}

static void hurry(struct process *process, double seconds)
{
    double deadline = seconds_now() + seconds;
    if (deadline >= process->deadline)
        return;
    process->deadline = deadline;
    process->hurried = true;
}

void processes_hurry(struct processes *all, double seconds)
{
    for (struct process *p = all->first; p; p = p->next)
        hurry(p, seconds);
}

void processes_allow(struct processes *all, double seconds)
{
    double deadline = seconds_now() + seconds;
    for (struct process *p = all->first; p; p = p->next)
        p->deadline = deadline;
}

void processes_stop(struct processes *all)
{
    for (struct process *p = all->first; p; p = p->next) {
        p->ended = NULL;
        if (p->limits.late_signal == SIGTERM)
            kill(p->pid, SIGTERM);
        hurry(p, p->limits.late_signal == SIGTERM ? p->limits.grace_s : 0);
    }
    while (all->first)
        processes_wait(all);
}

int process_run(struct process *process)
{
    struct processes *all = processes_new();
    int error = process_start(all, process);
    while (processes_running(all))
        processes_wait(all);
    processes_free(all);
    return error;
}

bool process_succeeded(const struct process *process)
{
    return !process->start_error && !process->late && !process->stopped &&
           WIFEXITED(process->wait_status) && WEXITSTATUS(process->wait_status) == 0;
}

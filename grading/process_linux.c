/* process_linux.c - what only Linux has. process_posix.c is its twin. */
#if defined(__linux__) && !defined(POSIX_ONLY)
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grading/process.h"

void system_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool is_known(pid_t pid, const pid_t *known, int n)
{
    for (int i = 0; i < n; i++)
        if (known[i] == pid)
            return true;
    return false;
}

static void kill_and_reap(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The parent of process `pid`, or -1. The name in the second field may hold anything, ")" too. */
static pid_t parent_of(const char *pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, line, sizeof line - 1);
    if (file >= 0)
        close(file);
    if (n <= 0)
        return -1;
    line[n] = '\0';
    const char *end = strrchr(line, ')');
    int parent;
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

/* Kill those children that are listed in /proc. returns: how many */
static int kill_listed(const pid_t *known, int n)
{
    int killed = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        pid_t pid = atoi(entry->d_name);
        if (pid <= 0 || is_known(pid, known, n) || parent_of(entry->d_name) != getpid())
            continue;
        kill_and_reap(pid);
        killed++;
    }
    if (all)
        closedir(all);
    return killed;
}

/* The kernel's own list of this thread's children, where it is built with it: cheaper than to look
 * at every process. returns: how many were killed, -1 without such a list */
static int kill_children(const pid_t *known, int n)
{
    FILE *list = fopen("/proc/thread-self/children", "re");
    if (!list)
        return -1;
    int killed = 0, pid;
    while (fscanf(list, "%d", &pid) == 1)
        if (!is_known(pid, known, n)) {
            kill_and_reap(pid);
            killed++;
        }
    fclose(list);
    return killed;
}

/* Killing one hands its own children to us, so this is repeated until there is none. With no known
 * child running, waitpid knows for sure. */
void system_kill_orphans(const pid_t *known, int n)
{
    int killed;
    do {
        killed = kill_children(known, n);
        if (killed < 0 || (killed == 0 && n == 0 && waitpid(-1, NULL, WNOHANG) >= 0))
            killed = kill_listed(known, n);
    } while (killed > 0);
}

/* Nobody but the kernel reads this file. Failing costs only the preference. */
static void prefer_to_be_killed(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t ignored = write(file, "1000", 4);
    (void)ignored;
    close(file);
}

void system_confine(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 1); /* else its files in /proc would be root's */
    prefer_to_be_killed();
}

void system_watch_parent(int pipe)
{
    (void)pipe;
}

void system_close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    long limit = sysconf(_SC_OPEN_MAX);
    for (int i = first; i < (limit > 0 ? limit : 65536); i++)
        close(i);
}

void system_signal_threads(pid_t pid, int signal)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    if (!threads) {
        kill(pid, signal);
        return;
    }
    for (struct dirent *entry; (entry = readdir(threads));)
        if (atoi(entry->d_name) > 0)
            syscall(SYS_tgkill, pid, atoi(entry->d_name), signal);
    closedir(threads);
}

int system_shared_page(size_t bytes, const char *folder)
{
    (void)folder;
    int page = memfd_create("status", MFD_CLOEXEC);
    if (page >= 0 && ftruncate(page, (off_t)bytes) < 0) {
        close(page);
        return -1;
    }
    return page;
}

const char *system_executable(void)
{
    return "/proc/self/exe";
}
#endif

/* process_posix.c - the twin of process_linux.c: what can be had anywhere. */
#if !defined(__linux__) || defined(POSIX_ONLY)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/command.h"
#include "grading/fault.h"
#include "grading/process.h"

void system_adopt_orphans(void)
{
}

void system_kill_orphans(const pid_t *known, int n)
{
    (void)known;
    (void)n;
}

void system_confine(void)
{
}

static void *wait_for_end(void *pipe)
{
    struct pollfd reader = {.fd = (int)(intptr_t)pipe};
    while (poll(&reader, 1, -1) < 0)
        ;
    _exit(1);
}

void system_watch_parent(int pipe)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_end, (void *)(intptr_t)pipe) == 0)
        pthread_detach(thread);
}

void system_close_from(int first)
{
    long limit = sysconf(_SC_OPEN_MAX);
    for (int i = first; i < (limit > 0 && limit < 65536 ? limit : 65536); i++)
        close(i);
}

void system_signal_threads(pid_t pid, int signal)
{
    kill(pid, signal);
}

int system_shared_page(size_t bytes, const char *folder)
{
    char *path = format_or_fault("%s/status.XXXXXX", folder);
    int page = mkstemp(path);
    if (page >= 0)
        unlink(path);
    free(path);
    if (page >= 0 && ftruncate(page, (off_t)bytes) < 0) {
        close(page);
        return -1;
    }
    return page;
}

/* The dynamic linker knows where this program's code came from: its path as it was started with. */
const char *system_executable(void)
{
    static char path[PATH_MAX];
    Dl_info info;
    if (path[0] || !dladdr((void *)&system_executable, &info))
        return path;
    const char *name = info.dli_fname;
    char *found = strchr(name, '/') ? format_or_fault("%s", name) : command_find(name);
    if (!found || !realpath(found, path))
        fault("cannot find the program that was started as %s, to start it again: use its path",
              name);
    free(found);
    return path;
}
#endif

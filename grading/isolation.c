/* isolation.c - which level, and what is the same on all systems. */
#include "grading/isolation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {
    [ISOLATION_PROCESS] = "process",
    [ISOLATION_SECCOMP] = "seccomp",
    [ISOLATION_NAMESPACES] = "namespaces",
};
enum { LEVELS = sizeof names / sizeof names[0] };

const char *isolation_name(enum isolation_level level)
{
    return level == ISOLATION_NONE ? "none" : names[level];
}

enum isolation_level isolation_parse(const char *name)
{
    for (int level = ISOLATION_NONE; level < LEVELS; level++)
        if (strcmp(name, isolation_name((enum isolation_level)level)) == 0)
            return (enum isolation_level)level;
    return ISOLATION_PROCESS;
}

/* What a subject and the processes above it will do, in one child. */
static bool works(enum isolation_level level, const char *home, const char *folder)
{
    struct enclosure enclosure = {
        .level = level,
        .hidden = {home, folder},
        .shown = {home},
        .writable = folder,
        .writable_bytes = 1 << 20,
    };
    int status;
    pid_t pid = isolation_fork(&enclosure);
    if (pid == 0)
        _exit(isolation_enter(&enclosure) && access(home, R_OK | X_OK) == 0 &&
                      isolation_guard(level, "cpu")
                  ? 0
                  : 1);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum isolation_level isolation_probe(const char *home, const char *folder)
{
    static int found = -1;
    const char *most = getenv("GRADE_ISOLATION");
    if (found >= 0)
        return (enum isolation_level)found;
    found = most && *most ? isolation_parse(most) : ISOLATION_NAMESPACES;
    while (found > ISOLATION_PROCESS && !works((enum isolation_level)found, home, folder))
        found--;
    if (found < ISOLATION_PROCESS)
        found = ISOLATION_PROCESS;
    return (enum isolation_level)found;
}

bool isolation_guard(enum isolation_level level, const char *device)
{
    return level <= ISOLATION_PROCESS || (isolation_drop_rights() && isolation_filter(device));
}

/* isolation_posix.c - the twin of isolation_linux.c and isolation_seccomp.c: nothing of theirs can
 * be had, and the level is "process". */
#if !defined(__linux__) || defined(POSIX_ONLY)
#include <errno.h>
#include <unistd.h>

#include "grading/isolation.h"

pid_t isolation_fork(const struct enclosure *enclosure)
{
    (void)enclosure;
    return fork();
}

static bool refuse(void)
{
    errno = ENOSYS;
    return false;
}

bool isolation_enter(const struct enclosure *enclosure)
{
    return !enclosure || enclosure->level <= ISOLATION_PROCESS || refuse();
}

bool isolation_filter(const char *device)
{
    (void)device;
    return refuse();
}

bool isolation_drop_rights(void)
{
    return refuse();
}

void isolation_protect(void)
{
}
#endif

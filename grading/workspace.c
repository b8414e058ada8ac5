#define _GNU_SOURCE /* mkdtemp, realpath */
#include "grading/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "grading/fault.h"

/* The one workspace of the process. Children that were forked inherit it and must not remove it. */
static struct {
    char *path;
    pid_t owner;
} workspace;

/* Where folders are moved to on their way out. */
struct removal {
    int top;
    long moved;
};

/* open_folder - even one whose permissions were taken away */
static DIR *open_folder(int parent, const char *name)
{
    fchmodat(parent, name, 0700, 0);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder && fd >= 0)
        close(fd);
    return folder;
}

/* empty_folder - unlink what is in it, and move its folders up to the top: however deep a tree is,
 * two descriptors and short paths are enough for it */
static void empty_folder(struct removal *removal, DIR *folder)
{
    struct dirent *entry;
    int fd = dirfd(folder);
    while ((entry = readdir(folder))) {
        const char *name = entry->d_name;
        char place[32];
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0 ||
            unlinkat(fd, name, AT_REMOVEDIR) == 0)
            continue;
        fchmodat(fd, name, 0700, 0);
        snprintf(place, sizeof place, ".%ld", removal->moved++);
        renameat(fd, name, removal->top, place);
    }
}

/* empty_top - one pass over the top. returns: whether a folder was removed, or moved to the top */
static bool empty_top(struct removal *removal)
{
    bool progress = false;
    DIR *top = open_folder(removal->top, ".");
    struct dirent *entry;
    while (top && (entry = readdir(top))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            unlinkat(removal->top, name, 0) == 0)
            continue;
        DIR *folder = open_folder(removal->top, name);
        if (!folder)
            continue;
        empty_folder(removal, folder);
        closedir(folder);
        progress = unlinkat(removal->top, name, AT_REMOVEDIR) == 0 || progress;
    }
    if (top)
        closedir(top);
    return progress;
}

int folder_remove(const char *path)
{
    struct removal removal = {.top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (removal.top >= 0) {
        while (empty_top(&removal))
            ;
        close(removal.top);
    }
    return rmdir(path);
}

/* ---- those of runs that were killed ---- */

enum { SETTLING_SECONDS = 10 };
#define NAME_BEGIN "grade-"

/* lock - take the lock of a folder; whoever holds it lasts as long as the descriptor is open
 * returns: the descriptor; -1 if another run has it */
static int lock(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A folder has its lock only a moment after it was made. */
static bool is_stale(int fd)
{
    struct stat folder;
    return fstat(fd, &folder) == 0 && folder.st_uid == geteuid() &&
           time(NULL) - folder.st_mtime > SETTLING_SECONDS;
}

static void remove_stale(const char *parent)
{
    DIR *all = opendir(parent);
    struct dirent *entry;
    while (all && (entry = readdir(all))) {
        if (strlen(entry->d_name) != strlen(NAME_BEGIN "XXXXXX") ||
            strncmp(entry->d_name, NAME_BEGIN, strlen(NAME_BEGIN)) != 0)
            continue;
        int fd = lock(dirfd(all), entry->d_name);
        char *path = format_or_fault("%s/%s", parent, entry->d_name);
        if (fd >= 0 && is_stale(fd))
            folder_remove(path);
        free(path);
        if (fd >= 0)
            close(fd);
    }
    if (all)
        closedir(all);
}

/* ---- the run's own ---- */

/* Libraries cannot be loaded from where programs cannot be run. */
static bool allows_programs(const char *path)
{
#ifdef ST_NOEXEC
    struct statvfs system;
    return statvfs(path, &system) < 0 || !(system.f_flag & ST_NOEXEC);
#else
    (void)path;
    return true;
#endif
}

const char *workspace_create(void)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent)
        parent = "/tmp";
    remove_stale(parent);
    char *path = format_or_fault("%s/" NAME_BEGIN "XXXXXX", parent);
    if (!mkdtemp(path)) {
        int error = errno;
        free(path);
        fault("cannot create a private folder in %s: %s", parent, strerror(error));
    }
    workspace.path = realpath(path, NULL);
    workspace.owner = getpid();
    if (!workspace.path || atexit(workspace_remove) != 0) {
        rmdir(path);
        fault("cannot use the private folder %s: %s", path, strerror(errno));
    }
    if (!allows_programs(workspace.path))
        fault(
            "%s does not allow programs to run (it is mounted noexec): set TMPDIR to a folder that "
            "does",
            parent);
    if (lock(AT_FDCWD, workspace.path) < 0)
        fault("cannot lock the private folder %s: %s", path, strerror(errno));
    free(path);
    return workspace.path;
}

void workspace_remove(void)
{
    if (!workspace.path || workspace.owner != getpid())
        return;
    if (folder_remove(workspace.path) < 0 && errno != ENOENT && folder_remove(workspace.path) < 0)
        fprintf(stderr, "grade: cannot remove %s: %s\n", workspace.path, strerror(errno));
    free(workspace.path);
    workspace.path = NULL;
}

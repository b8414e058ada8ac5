#define _GNU_SOURCE /* realpath */
#include "grading/home.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/fault.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

/* The real path of the running executable. owns: the caller */
static char *executable_path(void)
{
#ifdef __APPLE__
    char name[PATH_MAX];
    uint32_t size = sizeof name;
    char *path = _NSGetExecutablePath(name, &size) == 0 ? realpath(name, NULL) : NULL;
#else
    char *path = realpath("/proc/self/exe", NULL);
#endif
    if (!path)
        fault("cannot tell where this executable is");
    return path;
}

static bool holds_runtime(const char *folder)
{
    char *header = format_or_fault("%s/runtime/tensor.h", folder);
    bool found = access(header, R_OK) == 0;
    free(header);
    return found;
}

char *home_find(void)
{
    char *path = executable_path();
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        *slash = '\0';
        if (holds_runtime(path))
            return path;
    }
    fault("no folder above this executable holds runtime/tensor.h: leave it in its checkout");
}

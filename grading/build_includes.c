#define _GNU_SOURCE /* realpath */
#include "grading/build_includes.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "grading/fault.h"
#include "runtime/scope.h"

/* The path in a line of the list, or NULL if it is something else. */
static const char *included(const char *line)
{
    size_t depth = strspn(line, ".");
    return depth > 0 && line[depth] == ' ' ? line + depth + 1 : NULL;
}

static bool is_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Systems and compilers keep headers in many places, under few names: /usr/include,
 * /usr/lib/gcc/.../include-fixed, .../Frameworks/Accelerate.framework/Headers */
static bool is_system_header(const char *path)
{
    static const char *const names[] = {"/include/", "/include-fixed/", "/Headers/"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(path, names[i]))
            return true;
    return false;
}

static bool is_allowed(const char *path, const char *folder, const char *home)
{
    char real[PATH_MAX];
    if (!realpath(*path == '/' ? path : scope_printf("%s/%s", folder, path), real))
        return false;
    if (is_in(real, folder) || is_in(real, scope_printf("%s/runtime", home)) ||
        is_in(real, scope_printf("%s/assignment", home)))
        return true;
    return !is_in(real, home) && is_system_header(real);
}

/* After its list, gcc names headers without guards: this line, and paths. */
static bool is_advice(const char *line, bool *advice)
{
    if (strcmp(line, "Multiple include guards may be useful for:") == 0)
        return *advice = true;
    return *advice = *advice && !strchr(line, ':');
}

char *includes_take(const char *said, const char *folder, const char *home, const char **foreign)
{
    char *rest = scope_printf("%s", said), *line;
    char *kept = alloc_or_fault(strlen(said) + 2), *end = kept;
    bool advice = false;
    *foreign = NULL;
    while ((line = strsep(&rest, "\n"))) {
        const char *path = included(line);
        if (path && !*foreign && !is_allowed(path, folder, home))
            *foreign = path;
        if (!path && !is_advice(line, &advice) && (*line || rest))
            end = stpcpy(stpcpy(end, line), "\n");
    }
    return kept;
}

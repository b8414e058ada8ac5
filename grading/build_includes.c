#define _GNU_SOURCE /* realpath */
#include "grading/build_includes.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
 * /usr/lib/gcc/.../include-fixed, .../Frameworks/Accelerate.framework/Headers; links from the first
 * lead to /usr/lib/linux/uapi/... in Debian 13. */
static bool is_system_header(const char *path)
{
    static const char *const names[] = {"/include/", "/include-fixed/", "/Headers/",
                                        "/linux/uapi/"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(path, names[i]))
            return true;
    return false;
}

/* The file that has the first `length` bytes for its name, as the compiler understood them.
 * returns: false if there is none */
static bool find_file(const char *name, size_t length, const char *folder, char real[PATH_MAX])
{
    char path[2 * PATH_MAX];
    struct stat file;
    if (length >= PATH_MAX)
        return false;
    snprintf(path, sizeof path, "%s%s%.*s", *name == '/' ? "" : folder, *name == '/' ? "" : "/",
             (int)length, name);
    return realpath(path, real) && stat(real, &file) == 0 && !S_ISDIR(file.st_mode);
}

static bool is_allowed(const char *real, const char *folder, const char *home)
{
    if (is_in(real, folder) || is_in(real, scope_printf("%s/runtime", home)) ||
        is_in(real, scope_printf("%s/assignment", home)))
        return true;
    return !is_in(real, home) && is_system_header(real);
}

/* The file in the list's line that must not be read, or NULL. */
static const char *foreign_included(const char *line, const char *folder, const char *home)
{
    char real[PATH_MAX];
    const char *path = included(line);
    bool good =
        !path || (find_file(path, strlen(path), folder, real) && is_allowed(real, folder, home));
    return good ? NULL : path;
}

/* The same for the place that a message begins with, "PATH:LINE:". By #line, and by the assembler's
 * .include, it may be in a file that was not included; then lines of it are in the messages. */
static const char *foreign_place(const char *line, const char *folder, const char *home)
{
    char real[PATH_MAX];
    for (const char *end = line; (end = strchr(end, ':')) && end - line < PATH_MAX; end++)
        if (end[1] >= '0' && end[1] <= '9' && find_file(line, (size_t)(end - line), folder, real) &&
            !is_allowed(real, folder, home))
            return scope_printf("%.*s", (int)(end - line), line);
    return NULL;
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
        if (!*foreign)
            *foreign = foreign_included(line, folder, home);
        if (!*foreign)
            *foreign = foreign_place(line, folder, home);
        if (!included(line) && !is_advice(line, &advice) && (*line || rest))
            end = stpcpy(stpcpy(end, line), "\n");
    }
    return kept;
}

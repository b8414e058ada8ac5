#define _GNU_SOURCE
#include "grading/sanitize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/fault.h"
#include "runtime/built_with.h"
#include "runtime/scope.h"

enum { PLACES = 4 };

/* ---- this build's sanitizer ---- */

static bool confined; /* asked for at the very end */

void sanitize_confined(void)
{
    confined = true;
}

#if BUILT_WITH_ASAN || BUILT_WITH_TSAN
#define FOUND_BY_NAME __attribute__((visibility("default")))
FOUND_BY_NAME const char *__asan_default_options(void);
FOUND_BY_NAME const char *__tsan_default_options(void);
FOUND_BY_NAME int __lsan_is_turned_off(void);

/* A subject may ask for more than there is, as without a sanitizer. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* The first race ends the process: it is the reason. */
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:halt_on_error=1";
}

int __lsan_is_turned_off(void)
{
    return confined;
}
#endif

static bool is_address(const char *sanitizer)
{
    return strcmp(sanitizer, "address") == 0;
}

const char *sanitize_flags(const char *sanitizer)
{
    if (!*sanitizer)
        return "";
    return is_address(sanitizer) ? "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
                                 : "-fsanitize=thread";
}

int sanitize_become(const char *sanitizer, const char *home, char **argv, char **problem)
{
    if (strcmp(sanitizer, BUILT_WITH_ASAN ? "address" : BUILT_WITH_TSAN ? "thread" : "") == 0)
        return 0;
    const char *variant = is_address(sanitizer) ? "asan" : "tsan";
    char *program = format_or_fault("%s/build/%s/grade", home, variant);
    execv(program, argv);
    *problem = errno == ENOENT
                   ? format_or_fault("--sanitize: needs the build with that sanitizer: "
                                     "run `make VARIANT=%s` first",
                                     variant)
                   : format_or_fault("--sanitize: cannot run %s: %s", program, strerror(errno));
    free(program);
    return -1;
}

/* ---- reading a report ---- */

/* "assignment/FILE.c:LINE" in a line, or NULL */
static const char *place_in(const char *line)
{
    const char *place = strstr(line, "assignment/");
    const char *number = place ? strstr(place, ".c:") : NULL;
    if (!number || number[3] < '0' || number[3] > '9')
        return NULL;
    size_t digits = strspn(number + 3, "0123456789");
    return scope_printf("%.*s", (int)(number + 3 + digits - place), place);
}

/* The line up to the first of these ends (the last of which is NULL). */
static const char *up_to(const char *line, const char *const *ends)
{
    size_t length = strlen(line);
    for (; *ends; ends++) {
        const char *end = strstr(line, *ends);
        if (end && (size_t)(end - line) < length)
            length = (size_t)(end - line);
    }
    return scope_printf("%.*s", (int)length, line);
}

/* "WRITE of size 4" of "WRITE of size 4 at 0x7f... thread T0": threads and addresses say nothing.
 */
static const char *heading(const char *line)
{
    static const char *const ends[] = {" at 0x",    " by thread", " by main thread",
                                       " thread T", ":",          NULL};
    return up_to(line + strspn(line, " "), ends);
}

/* "heap-buffer-overflow" of "heap-buffer-overflow on address 0x604... at pc 0x7f..." */
static const char *title(const char *text)
{
    static const char *const ends[] = {
        " on address 0x", " on unknown address", " on 0x", ": 0x", " (pid", NULL};
    return up_to(text, ends);
}

/* A report is a sequence of headings, each with a stack below it: the student's innermost line of
 * each. The first stack may be that of the title. */
static const char *add_places(const char *what, char *rest)
{
    char *line, *above = "";
    for (int n = 0; n < PLACES && (line = strsep(&rest, "\n")) && !strstr(line, "SUMMARY:");) {
        const char *place = line[strspn(line, " ")] == '#' ? place_in(line) : NULL;
        if (place && above) {
            const char *sign = !*above ? "" : n == 0 ? ": " : "; ";
            what = scope_printf("%s%s%s at %s", what, sign, heading(above), place);
            above = NULL;
            n++;
        } else if (line[strspn(line, " ")] != '#' && *line) {
            above = line;
        }
    }
    return what;
}

/* "assignment/FILE.c:9:5: runtime error: division by zero" */
static const char *undefined_behaviour(const char *line)
{
    const char *what = strstr(line, ": runtime error: "), *place = place_in(line);
    return what ? scope_printf("undefined behaviour: %s%s%s", what + strlen(": runtime error: "),
                               place ? " at " : "", place ? place : "")
                : NULL;
}

const char *sanitize_report(const char *printed)
{
    char *rest = scope_printf("%s", printed), *line;
    while ((line = strsep(&rest, "\n"))) {
        const char *undefined = undefined_behaviour(line);
        const char *name = strstr(line, "Sanitizer: ");
        if (undefined)
            return undefined;
        if (!name || (!strstr(line, "ERROR: ") && !strstr(line, "WARNING: ")))
            continue;
        const char *what = title(name + strlen("Sanitizer: "));
        return rest ? add_places(what, rest) : what;
    }
    return NULL;
}

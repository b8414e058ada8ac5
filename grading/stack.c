/* stack.c - the judge's half of crash.h: what a status page says, in words. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/crash.h"
#include "grading/process.h"
#include "runtime/memory_internal.h"
#include "runtime/scope.h"
#include "runtime/sim/sim_address.h"

static int within(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static void make_stack_safe(struct stack *stack)
{
    atomic_store(&stack->frames, within(atomic_load(&stack->frames), 0, STACK_FRAMES));
    for (int k = 0; k < STACK_FRAMES; k++)
        stack->at[k].function[FUNCTION_BYTES - 1] = '\0';
}

static void make_safe(struct status_page *status)
{
    for (int i = 0; i < ACTIVITY_SLOTS; i++)
        status->activity[i].text[ACTIVITY_BYTES - 1] = '\0';
    atomic_store(&status->stacks, within(atomic_load(&status->stacks), 0, STACKS));
    for (int i = 0; i < STACKS; i++)
        make_stack_safe(&status->stack[i]);
    make_stack_safe(&status->misuse.stack);
    status->called[FUNCTION_BYTES - 1] = '\0';
    status->fault[FAULT_BYTES - 1] = '\0';
}

/* Read, not mapped: a subject may have made the page shorter. */
bool status_read(int descriptor, struct status_page *copy)
{
    if (pread(descriptor, copy, sizeof *copy, 0) != (ssize_t)sizeof *copy)
        return false;
    make_safe(copy);
    return true;
}

const char *signal_name(int signal)
{
    static const struct {
        int signal;
        const char *name;
    } known[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
                 {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}, {SIGKILL, "SIGKILL"},
                 {SIGTERM, "SIGTERM"}, {SIGPIPE, "SIGPIPE"}, {SIGXFSZ, "SIGXFSZ"},
                 {SIGXCPU, "SIGXCPU"}, {SIGALRM, "SIGALRM"}, {SIGTRAP, "SIGTRAP"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].signal == signal)
            return known[i].name;
    return scope_printf("signal %d", signal);
}

/* ---- from offsets to lines ---- */

#ifdef __APPLE__
static const char *const resolver[] = {"atos", "-fullPath", "-offset", "-o"};
#else
static const char *const resolver[] = {"addr2line", "-i", "-f", "-e"};
#endif
enum { RESOLVER = sizeof resolver / sizeof resolver[0] };

/* What the resolver prints for all frames, or NULL. owns: the caller (free) */
static char *resolve(const struct stack *stack, const char *library, const char *folder)
{
    int n = 0, frames = atomic_load(&stack->frames);
    const char *arguments[RESOLVER + STACK_FRAMES + 2];
    for (; n < RESOLVER; n++)
        arguments[n] = resolver[n];
    arguments[n++] = library;
    for (int i = 0; i < frames; i++)
        arguments[n++] = scope_printf("0x%llx", (unsigned long long)stack->at[i].offset);
    arguments[n] = NULL;
    struct process process = {.program = arguments[0],
                              .arguments = arguments,
                              .folder = folder,
                              .limits = {.wall_s = 5, .memory_bytes = 4ULL << 30}};
    if (frames == 0 || process_run(&process) != 0)
        return NULL;
    char *text = process_succeeded(&process) ? capture_text(&process.output) : NULL;
    process_close(&process);
    return text;
}

/* "FUNCTION\n.../assignment/FILE.c:LINE (...)\n" for each frame and each inlined call in it: the
 * first in the student's file, not in a header that belongs to it. */
static const char *first_in_assignment(char *text, int *frame)
{
    const char *folder = "assignment/";
    char *function = strsep(&text, "\n"), *line;
    for (*frame = 0; (line = strsep(&text, "\n")); ++*frame) {
        char *path = strstr(line, folder), *number = path ? strstr(path, ".c:") : NULL;
        if (number && number[3] != '?')
            return scope_printf("at %.*s in %s", (int)strcspn(path, " "), path, function);
        function = strsep(&text, "\n");
    }
    return NULL;
}

const char *stack_place(const struct stack *stack, const char *library, const char *folder)
{
    int frame = 0;
    char *text = resolve(stack, library, folder);
    const char *place = text ? first_in_assignment(text, &frame) : NULL;
    free(text);
    if (!place && atomic_load(&stack->frames) > 0 && stack->at[0].function[0])
        place = scope_printf("in %s", stack->at[0].function);
    if (!place)
        return "";
    return stack->in_callee || frame > 0 ? scope_printf("in a call made %s", place) : place;
}

/* crash_address - " (address 0x10)", with what is there, where it can be told */
static const char *crash_address(const struct stack *stack)
{
    const unsigned long long address = stack->address;
    const int gpu = sim_address_device(address);
    if (!stack->has_address)
        return "";
    if (gpu >= 0)
        return scope_printf(" (address 0x%llx, in the memory of cuda:%d)", address, gpu);
    return scope_printf(" (address 0x%llx%s)", address,
                        stack->is_full ? ", past the end of the stack" : "");
}

const char *stack_crash(const struct stack *stack, const char *library, const char *folder)
{
    const char *name = signal_name(atomic_load(&stack->signal));
    const char *place = stack_place(stack, library, folder);
    return scope_printf("%s%s%s%s", name, crash_address(stack), *place ? " " : "", place);
}

const char *stack_misuse(const struct misuse *misuse, const char *library, const char *folder)
{
    static const char *const did[] = {
        [MEMORY_PAST_END] = "wrote past the end of",
        [MEMORY_BEFORE_START] = "wrote before the start of",
        [MEMORY_AFTER_FREE] = "wrote, after it was freed, into",
        [MEMORY_FREED_TWICE] = "freed twice",
    };
    int kind = within(atomic_load(&misuse->kind), MEMORY_PAST_END, MEMORY_FREED_TWICE);
    const char *place = stack_place(&misuse->stack, library, folder);
    return scope_printf("student code %s a block of %ju bytes%s%s", did[kind],
                        (uintmax_t)misuse->bytes, *place ? ", allocated " : "", place);
}

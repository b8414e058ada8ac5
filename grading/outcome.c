/* outcome.c - from how subjects ended to one verdict, for the most telling reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "grading/observations.h"
#include "grading/run.h"
#include "grading/sanitize.h"
#include "grading/subject.h"
#include "grading/worlds.h"
#include "runtime/scope.h"

/* From what says little about the cause to what is the cause: one rank's error is why its peers get
 * a DistError, or cannot begin, and a crash is why there is no observation. */
enum weight {
    FINE,
    UNBEGUN,
    PEER,
    STOPPED,
    UNREADABLE,
    LATE,
    RAISED,
    LEFT,
    UNABLE,
    CRASHED,
    MISUSED
};

static const char *who(const struct inhabitant *subject)
{
    return subject->world_size == 1
               ? ""
               : scope_printf("rank %d of %d: ", subject->rank, subject->world_size);
}

const char *inhabitant_end(const struct inhabitant *subject)
{
    int status = subject->process.wait_status;
    if (subject->process.late)
        return "was stopped when its time was over";
    if (subject->process.stopped)
        return "was stopped";
    if (WIFSIGNALED(status))
        return scope_printf("was killed by %s", signal_name(WTERMSIG(status)));
    return scope_printf("exited with status %d", WEXITSTATUS(status));
}

void inhabitant_write(const struct inhabitant *subject, FILE *to)
{
    char *output = capture_text(&subject->process.output);
    fprintf(to, "---- rank %d of %d %s after %.3f s%s\n%s", subject->rank, subject->world_size,
            inhabitant_end(subject), subject->process.seconds, *output ? ", having printed:" : "",
            output);
    free(output);
}

static const struct stack *crash_of(const struct inhabitant *subject)
{
    int status = subject->process.wait_status;
    const struct stack *stack = &subject->status.stack[0];
    for (int i = 0; i < STACKS; i++, stack++)
        if (WIFSIGNALED(status) && stack->signal == WTERMSIG(status) && stack->signal != TIME_UP)
            return stack;
    return NULL;
}

static bool is_peers_doing(const char *failure)
{
    return strstr(failure, "DistError") != NULL;
}

/* What a sanitizer found, or NULL. */
static const char *sanitizer_words(const struct inhabitant *subject)
{
    if (!*subject->worlds->sanitizer || process_succeeded(&subject->process))
        return NULL;
    char *printed = capture_text(&subject->process.output);
    const char *report = sanitize_report(printed);
    free(printed);
    return report;
}

static enum weight weigh(const struct inhabitant *subject)
{
    const struct observations *o = subject->observations;
    bool signalled = WIFSIGNALED(subject->process.wait_status);
    if (!inhabitant_began(subject))
        return UNBEGUN;
    if (subject->process.late || subject->process.stopped)
        return subject->process.late ? LATE : STOPPED;
    if (subject->status.misuse.kind || sanitizer_words(subject))
        return MISUSED;
    if (signalled)
        return CRASHED;
    if (subject->status.fault[0])
        return UNABLE;
    if (!o)
        return UNREADABLE;
    if (observations_failure(o))
        return is_peers_doing(observations_failure(o)) ? PEER : RAISED;
    return observations_complete(o) && process_succeeded(&subject->process) ? FINE : LEFT;
}

/* ---- in words ---- */

/* A crash without a frame of the student's is often one of who reads what a function returned. */
static const char *call_words(const struct inhabitant *subject, const struct stack *stack)
{
    if (atomic_load(&stack->frames) > 0 || !subject->status.called[0])
        return "";
    return scope_printf(" in the call of %s, or where its result was read", subject->status.called);
}

static const char *crash_words(const struct inhabitant *subject)
{
    const struct worlds *worlds = subject->worlds;
    const struct stack *stack = crash_of(subject);
    const char *what =
        stack ? scope_printf("%s%s", stack_crash(stack, worlds->library, worlds->folder),
                             call_words(subject, stack))
              : signal_name(WTERMSIG(subject->process.wait_status));
    const char *hint = WTERMSIG(subject->process.wait_status) == SIGKILL
                           ? " (the system may have run out of memory)"
                           : "";
    return scope_printf("%scrashed: %s%s", who(subject), what, hint);
}

static const char *misuse_words(const struct inhabitant *subject)
{
    const struct worlds *worlds = subject->worlds;
    const char *found = sanitizer_words(subject);
    if (found)
        return scope_printf("%s%s", who(subject), found);
    const char *what = stack_misuse(&subject->status.misuse, worlds->library, worlds->folder);
    if (WIFSIGNALED(subject->process.wait_status))
        return scope_printf("%s\n%s%s", crash_words(subject), who(subject), what);
    return scope_printf("%s%s", who(subject), what);
}

static const char *joined(const char *list, const char *more)
{
    return *list ? scope_printf("%s; %s", list, more) : more;
}

/* What a subject that was stopped had been doing: what its threads waited for, and where. */
static const char *hang_words(const struct inhabitant *subject)
{
    const struct worlds *worlds = subject->worlds;
    const char *waiting = "", *places = "";
    for (int i = 0; i < ACTIVITY_SLOTS; i++) {
        const struct activity_slot *slot = &subject->status.activity[i];
        if (slot->thread && slot->waiting && !strstr(waiting, slot->text))
            waiting = joined(waiting, slot->text);
    }
    for (int i = 0; i < subject->status.stacks; i++) {
        const char *place = stack_place(&subject->status.stack[i], worlds->library, worlds->folder);
        if (*place && !strstr(places, place))
            places = joined(places, place);
    }
    return scope_printf("%s%s%s%s", who(subject), *waiting ? waiting : "running",
                        *places ? ", " : "", places);
}

static const char *late_words(const struct worlds *worlds)
{
    const char *words = scope_printf("not finished after %g s", worlds->timeout_s);
    for (int i = 0; i < worlds->count; i++)
        if (worlds->at[i].process.late)
            words = scope_printf("%s\n%s", words, hang_words(&worlds->at[i]));
    return words;
}

static const char *words(const struct inhabitant *subject, enum weight weight)
{
    switch (weight) {
    case UNBEGUN:
        return scope_printf("%sthe process %s before the student's code ran", who(subject),
                            inhabitant_end(subject));
    case CRASHED:
        return crash_words(subject);
    case MISUSED:
        return misuse_words(subject);
    case UNABLE:
        return scope_printf("%s%s", who(subject), subject->status.fault);
    case LEFT:
        return scope_printf(
            "%sthe process %s before everything was observed: does the code end it, "
            "with exit or otherwise?",
            who(subject), inhabitant_end(subject));
    case LATE:
        return late_words(subject->worlds);
    case UNREADABLE:
        return scope_printf("%swhat the process recorded is unreadable", who(subject));
    case STOPPED:
        return scope_printf("%sthe process %s", who(subject), inhabitant_end(subject));
    default:
        return scope_printf("%s%s", who(subject), observations_failure(subject->observations));
    }
}

int worlds_outcome(const struct worlds *worlds, const char **reason)
{
    enum weight heaviest = FINE;
    const struct inhabitant *culprit = NULL;
    for (int i = 0; i < worlds->count; i++)
        if (weigh(&worlds->at[i]) > heaviest) {
            culprit = &worlds->at[i];
            heaviest = weigh(culprit);
        }
    *reason = culprit ? words(culprit, heaviest) : NULL;
    return !culprit ? 0 : heaviest == LATE ? STATUS_TIMEOUT : STATUS_FAILED;
}

/* diagnose.c - from the hypotheses that hold to what probably went wrong. */
#include <string.h>

#include "grading/fault.h"
#include "grading/judge.h"
#include "runtime/scope.h"

enum { NAMED_MAX = 3 }; /* more than that say nothing */

/* The judge has its reason: what a hypothesis fails or raises is only that it does not hold. */
static bool holds(struct judge *j, const struct hypothesis *hypothesis)
{
    SCOPE;
    bool held = hypothesis->holds(j, hypothesis->with) && !error_occurred();
    error_clear();
    return held;
}

/* name_holding - the sentences of those that hold. named: set to how many. owns: the scope's */
static const char *name_holding(struct judge *j, bool perhaps, int *named)
{
    const char *sentences = "";
    *named = 0;
    for (const struct hypothesis *h = j->criterion->causes; h->sentence; h++)
        if (h->perhaps == perhaps && holds(j, h))
            sentences = scope_printf("%s%s%s", sentences, ++*named > 1 ? "; or " : "", h->sentence);
    return sentences;
}

static bool has_any(const char *text, const char *const *words)
{
    while (*words && !strstr(text, *words))
        words++;
    return *words != NULL;
}

/* memory_cause - what was wrong about the memory that was used; NULL if that cannot be told. Before
 * and after its use memory holds 32- or 64-bit numbers by which one knows it
 * (runtime/memory_internal.h; the last two of those before it are AddressSanitizer's). */
static const char *memory_cause(const char *reason)
{
    static const char *const fresh[] = {"-67372037", "-289360691352306693", "-1094795586",
                                        "-4702111234474983746", NULL};
    static const char *const freed[] = {"-33686019", "-144680345676153347", NULL};
    if (strstr(reason, "in the memory of cuda:"))
        return "the host reads or writes a GPU's memory through a pointer; tensor_item and "
               "tensor_to(x, CPU) bring values to the host";
    if ((strstr(reason, "freed twice") && strstr(reason, "allocated in a call made")) ||
        strstr(reason, "attempting free on address which was not malloc()-ed"))
        return "memory that malloc did not return is passed to free: what the runtime returns is "
               "freed by its scope, never by you";
    if (strstr(reason, ", past the end of the stack)"))
        return "the stack is full: a function calls itself without an end, or its local arrays are "
               "too large";
    if (has_any(reason, fresh))
        return "memory is read that was allocated but not written";
    if (has_any(reason, freed))
        return "memory is used that was freed already, or whose scope has ended";
    return NULL;
}

void judge_diagnose(struct judge *j)
{
    SCOPE;
    if (!j->reason || strstr(j->reason, "raised NotImplementedError"))
        return;
    const char *memory = memory_cause(j->reason);
    if (memory)
        j->cause = format_or_fault("likely cause: %s", memory);
    if (memory || !j->criterion->causes)
        return;
    int named;
    const char *sentences = name_holding(j, false, &named);
    bool likely = named == 1;
    if (named == 0)
        sentences = name_holding(j, true, &named);
    if (named >= 1 && named <= NAMED_MAX)
        j->cause = format_or_fault("%s: %s", likely ? "likely cause" : "perhaps", sentences);
}

const char *judge_reason(const struct judge *j)
{
    return j->reason ? j->reason : "";
}

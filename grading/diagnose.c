/* diagnose.c - from the hypotheses that hold to what probably went wrong. */
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

void judge_diagnose(struct judge *j)
{
    SCOPE;
    if (!j->criterion->causes || !j->reason)
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

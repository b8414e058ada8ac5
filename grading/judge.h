#ifndef GRADING_JUDGE_H
#define GRADING_JUDGE_H
/* judge.h - the trusted role: starts the subjects, and decides over what they recorded. */
#include <jansson.h>
#include <stdint.h>

#include "criteria/criterion.h"
#include "grading/run.h"
#include "grading/worlds.h"

struct judge {
    const struct criterion *criterion;
    uint64_t seed;
    enum device_kind device;
    struct worlds *worlds; /* the subjects, and what each recorded */
    char *reason;          /* the first judge_fail's, or NULL. owns: the judge */
    char *cause;           /* what may have led to it, or NULL. owns: the judge */
    json_t *measurements;  /* NULL until something was measured */
};

/* judge_decide - from what the worlds recorded to the verdict: passed, failed or timed out; with
 * the reason, which ends with the cause. errors: a judge that cannot judge is a fault */
enum status judge_decide(struct judge *j);

/* judge_diagnose - after a failure: the cause, from those of the criterion's hypotheses that hold
 * ("likely cause: ...", "perhaps: ..."). Reads the reason. */
void judge_diagnose(struct judge *j);

/* The arguments that the role starts with. The log is open in a descriptor: the role may see no
 * folder but its own. Its verdict goes to PROCESS_DATA as JSON: status, and,
 * as the case may be, reason, cause and measurements. It exits with 0 for passed, 1 for failed, 124
 * for a time-out; anything else, or no verdict, is a fault. */
enum {
    CRITERION_EXECUTABLE = 1,
    CRITERION_ID,
    CRITERION_DEVICE,
    CRITERION_PLUGIN, /* of the device; "" for the CPU */
    CRITERION_SEED,
    CRITERION_TIMEOUT,
    CRITERION_LIBRARY,
    CRITERION_FOLDER,
    CRITERION_ISOLATION,
    CRITERION_SANITIZER, /* that the library is built with, or "" */
    CRITERION_ARGUMENTS
};
enum { CRITERION_LOG = PROCESS_DATA + 1 };
#endif

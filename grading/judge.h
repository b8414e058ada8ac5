#ifndef GRADING_JUDGE_H
#define GRADING_JUDGE_H
/* judge.h - the trusted role: starts the subjects, and decides over what they recorded. */
#include <jansson.h>
#include <stdint.h>

#include "criteria/criterion.h"
#include "grading/worlds.h"

struct judge {
    const struct criterion *criterion;
    uint64_t seed;
    enum device_kind device;
    struct worlds *worlds; /* the subjects, and what each recorded */
    char *reason;          /* the first judge_fail's, or NULL. owns: the judge */
    json_t *measurements;  /* NULL until something was measured */
};
#endif

#ifndef CRITERIA_CAUSE_H
#define CRITERIA_CAUSE_H
/* cause.h - hypotheses that several criteria have in common.
 *
 * Most hypotheses are the criterion's own judge, told what a mistake would compute; see struct
 * training in updates.c. These are for what is said rather than computed. */
#include "criteria/criterion.h"

/* seen - what a rank alone recorded */
const struct observations *seen(const struct judge *j);

/* Bad arguments that were taken. The errors of `cases` refusals were recorded under "PREFIX
 * 0SUFFIX", "PREFIX 1SUFFIX", ...; those of the cases in `taken` (bit by case), and only those, are
 * no ValueErrors. It holds only where such a refusal is the reason. */
struct taken {
    const char *prefix, *suffix;
    int cases;
    unsigned taken;
    int world_size; /* where they were recorded; 0: a rank alone */
};

/* cause_taken - with: a struct taken */
bool cause_taken(struct judge *j, const void *with);

/* cause_said - the reason, after the rank in it, begins as this text does. with: text. The text
 * must reach no further than the grader's own words. */
bool cause_said(struct judge *j, const void *with);

/* refused - a ValueError was recorded under the key */
bool refused(const struct observations *o, const char *key);

/* same_text - whether both are given and the same */
bool same_text(const char *a, const char *b);
#endif

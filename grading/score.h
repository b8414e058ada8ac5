#ifndef GRADING_SCORE_H
#define GRADING_SCORE_H
/* score.h - what results are worth. */
#include "grading/run.h"

/* score - over the selected criteria of a run; blocked_points are part of possible */
struct score {
    int earned, possible, blocked_points;
    int passed, failed, blocked; /* criteria; a time-out counts as failed */
};

/* score_earned - all of a criterion's points if it passed, else none */
int score_earned(const struct result *result);

struct score score_of(const struct run *run);

/* score_status - the command's exit status: 0 all passed, 1 something failed, 2 nothing failed but
 * something was blocked */
int score_status(const struct score *score);
#endif

/* The grader's clock_cycles, which stands in for the student's where a criterion is about what
 * calls it. */
#include "assignment/pipeline.h"

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "no schedule for %d microbatches and %d stages", microbatches,
                          stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int k = 0; schedule && k < schedule->n; k++)
        for (int stage = 0; stage < stages; stage++)
            if (k >= stage && k - stage < microbatches)
                wave_add(&schedule->at[k], k - stage, stage);
    return schedule;
}

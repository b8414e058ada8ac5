/* The grader's clock_cycles, which stands in for the student's where a criterion is about what
 * calls it. */
#include "assignment/pipeline.h"

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

/* Wave k holds the pairs (k - stage, stage) whose microbatch exists. */
static struct wave wave_of(int k, int microbatches, int stages)
{
    int first = k < microbatches ? 0 : k - microbatches + 1;
    int end = at_most(k + 1, stages);
    struct wave wave = {.n = end - first,
                        .at = scope_alloc(sizeof *wave.at * (size_t)(end - first))};
    for (int i = 0; wave.at && i < wave.n; i++)
        wave.at[i] = (struct pair){.microbatch = k - first - i, .stage = first + i};
    return wave;
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "no schedule for %d microbatches and %d stages", microbatches,
                          stages);
    struct schedule *schedule = scope_alloc(sizeof *schedule);
    if (!schedule)
        return NULL;
    schedule->n = microbatches ? microbatches + stages - 1 : 0;
    schedule->at = scope_alloc(sizeof *schedule->at * (size_t)schedule->n);
    for (int k = 0; schedule->at && k < schedule->n; k++)
        schedule->at[k] = wave_of(k, microbatches, stages);
    return error_occurred() ? NULL : schedule;
}

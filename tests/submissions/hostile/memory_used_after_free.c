/* The schedule is in memory that was freed.
 * fails: schedule
 * says: memory is used that was freed already
 */
#include <stdlib.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n; w++)
        w->at = malloc((size_t)stages * sizeof *w->at);
    for (int j = 0; j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i, j);
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n; w++)
        free(w->at);
    return schedule;
}

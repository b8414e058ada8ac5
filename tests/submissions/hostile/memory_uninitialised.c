/* Counts the pairs of a wave from whatever malloc's memory holds.
 * fails: schedule
 * says: crashed: SIGSEGV
 */
#include <stdlib.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    int waves = microbatches ? microbatches + stages - 1 : 0;
    struct schedule *schedule = malloc(sizeof *schedule);
    schedule->n = waves;
    schedule->at = malloc((size_t)waves * sizeof *schedule->at);
    for (int k = 0; k < waves; k++)
        schedule->at[k].at = malloc((size_t)stages * sizeof(struct pair));
    for (int j = 0; j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

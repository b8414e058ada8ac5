/* Static tables for 64 waves of 16 pairs, and no check.
 * fails: schedule
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    static struct pair pairs[64][16];
    static struct wave waves[64];
    struct schedule *schedule = scope_alloc(sizeof *schedule);
    *schedule = (struct schedule){microbatches ? microbatches + stages - 1 : 0, waves};
    for (int k = 0; k < schedule->n; k++)
        waves[k] = (struct wave){0, pairs[k]};
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

/* No more than 64 waves of 16 pairs.
 * fails: schedule
 * cause: fixed size
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            if (i + j < 64 && schedule->at[i + j].n < 16)
                wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

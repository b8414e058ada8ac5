/* M + N - 2 waves: the last pair is lost.
 * fails: schedule
 * cause: one too few
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule =
        schedule_new(microbatches ? microbatches + stages - 2 : 0, stages);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            if (i + j < schedule->n)
                wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

/* Counts waves per stage instead of adding i and j. */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0, k = j; i < microbatches; i++, k++)
            wave_add(&schedule->at[k], i, j);
    return schedule;
}

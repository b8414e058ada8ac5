/* Pairs of a wave by falling stage.
 * fails: schedule
 * cause: descending
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int j = stages - 1; schedule && j >= 0; j--)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

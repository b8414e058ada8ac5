/* Takes microbatches for stages, and stages for microbatches.
 * fails: schedule
 * cause: swapped
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0,
                                             stages > microbatches ? stages : microbatches);
    for (int j = 0; schedule && j < microbatches; j++)
        for (int i = 0; i < stages; i++)
            wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

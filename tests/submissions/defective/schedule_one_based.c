/* Microbatches and stages from 1.
 * fails: schedule
 * cause: from 1
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i + 1, j + 1);
    return schedule;
}

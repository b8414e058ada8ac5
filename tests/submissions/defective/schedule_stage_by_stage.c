/* A wave for every stage: all its microbatches at once.
 * fails: schedule
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? stages : 0, microbatches + 1);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[j], i, j);
    return schedule;
}

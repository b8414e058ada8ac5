/* Raises the error for wrong arguments, but does not return.
 * fails: schedule
 * says: does not return NULL
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        (void)raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule =
        schedule_new(microbatches > 0 ? microbatches + stages - 1 : 0, stages > 0 ? stages : 1);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

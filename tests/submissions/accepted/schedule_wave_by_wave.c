/* Wave by wave, with the bounds computed. */
struct schedule *clock_cycles(int microbatches, int stages)
{
    if (stages <= 0 || microbatches < 0)
        return raise_null(ValueError, "clock_cycles(%d, %d)", microbatches, stages);
    int waves = microbatches == 0 ? 0 : microbatches + stages - 1;
    struct schedule *schedule = schedule_new(waves, stages);
    for (int k = 0; schedule && k < waves; k++) {
        int first = k < microbatches ? 0 : k - microbatches + 1;
        int last = k < stages ? k : stages - 1;
        for (int stage = first; stage <= last; stage++)
            wave_add(&schedule->at[k], k - stage, stage);
    }
    return schedule;
}

/* In memory from calloc that it keeps, and each wave exactly as large as it needs to be. */
#include <stdlib.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "wrong");
    struct schedule *schedule = calloc(1, sizeof *schedule);
    for (int k = 0; microbatches && k < microbatches + stages - 1; k++) {
        struct wave wave = {0, NULL};
        for (int j = 0; j < stages; j++) {
            if (k - j < 0 || k - j >= microbatches)
                continue;
            wave.at = realloc(wave.at, (size_t)(wave.n + 1) * sizeof *wave.at);
            wave.at[wave.n++] = (struct pair){.stage = j, .microbatch = k - j};
        }
        schedule->at = realloc(schedule->at, (size_t)(k + 1) * sizeof *schedule->at);
        schedule->at[schedule->n++] = wave;
    }
    return schedule;
}

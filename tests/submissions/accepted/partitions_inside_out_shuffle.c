/* Shuffles while it deals (inside-out Fisher-Yates), with memory from malloc that it keeps. */
#include <stdlib.h>

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    if (size < 0 || world_size < 1)
        return raise_null(ValueError, "%jd indices for %d ranks", (intmax_t)size, world_size);
    int64_t *order = malloc((size_t)(size + 1) * sizeof *order);
    struct rng rng;
    rng_seed(&rng, seed);
    for (int64_t i = 0; i < size; i++) {
        int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    struct partitions *partitions = partitions_new(world_size);
    int64_t *next = order;
    for (int rank = 0; rank < world_size; rank++) {
        int64_t n = (size + world_size - 1 - rank) / world_size;
        partitions->at[rank] = (struct partition){n, next};
        next += n;
    }
    return partitions;
}

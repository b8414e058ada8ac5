/* The time since the machine started goes into the seed, in whole seconds.
 * fails: partitions
 * cause: the time
 */
#include <time.h>

static uint64_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    if (size < 0 || world_size < 1)
        return raise_null(ValueError, "size %jd, world_size %d", (intmax_t)size, world_size);
    struct partitions *partitions = partitions_new(world_size);
    int64_t *order = indices_range(size);
    if (!partitions || !order)
        return NULL;
    struct rng rng;
    rng_seed(&rng, seed + seconds());
    rng_shuffle(&rng, order, size);
    for (int rank = 0; rank < world_size; rank++) {
        int64_t share = size / world_size + (rank < size % world_size);
        partitions->at[rank] = (struct partition){share, order};
        order += share;
    }
    return partitions;
}

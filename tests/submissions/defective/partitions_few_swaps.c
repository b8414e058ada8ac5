/* Swaps three pairs and calls it a shuffle.
 * fails: partitions
 * cause: not shuffle
 */
struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    if (size < 0 || world_size < 1)
        return raise_null(ValueError, "size %jd, world_size %d", (intmax_t)size, world_size);
    struct partitions *partitions = partitions_new(world_size);
    int64_t *order = indices_range(size);
    if (!partitions || !order)
        return NULL;
    struct rng rng;
    rng_seed(&rng, seed);
    for (int i = 0; i < 3 && size > 0; i++) {
        int64_t a = (int64_t)rng_below(&rng, (uint64_t)size), kept = order[a];
        order[a] = order[0];
        order[0] = kept;
    }
    for (int rank = 0; rank < world_size; rank++) {
        int64_t share = size / world_size + (rank < size % world_size);
        partitions->at[rank] = (struct partition){share, order};
        order += share;
    }
    return partitions;
}

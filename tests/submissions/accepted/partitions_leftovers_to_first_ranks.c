/* Equal shares first, then the leftovers to the first ranks. */
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
    rng_shuffle(&rng, order, size);
    for (int rank = 0; rank < world_size; rank++) {
        int64_t even = size / world_size, left = even * world_size + rank;
        int64_t *mine = scope_alloc((size_t)(even + 1) * sizeof *mine);
        for (int64_t i = 0; i < even; i++)
            mine[i] = order[rank * even + i];
        if (left < size)
            mine[even] = order[left];
        partitions->at[rank] = (struct partition){even + (left < size), mine};
    }
    return partitions;
}

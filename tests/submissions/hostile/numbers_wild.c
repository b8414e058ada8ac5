/* Gives a list a size that nothing could have.
 * fails: partitions
 */
struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    struct partitions *partitions = partitions_new(world_size > 0 ? world_size : 1);
    int64_t *order = indices_range(size > 0 ? size : 0);
    for (int rank = 0; rank < partitions->n; rank++)
        partitions->at[rank] = (struct partition){size / partitions->n, order};
    partitions->at[0].n = -(INT64_C(1) << 40) - (int64_t)seed;
    return partitions;
}

/* Truncated shares of a copy each, the leftovers appended one by one.  */
#include <string.h>

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    if (size < 0 || world_size < 1)
        return raise_null(ValueError, "size %jd, world_size %d", (intmax_t)size, world_size);
    struct partitions *partitions = partitions_new(world_size);
    int64_t *order = indices_range(size), even = size / world_size;
    if (!partitions || !order)
        return NULL;
    struct rng rng;
    rng_seed(&rng, seed);
    rng_shuffle(&rng, order, size);
    for (int rank = 0; rank < world_size; rank++) {
        int64_t *mine = scope_alloc((size_t)(even + 1) * sizeof *mine);
        if (!mine)
            return NULL;
        memcpy(mine, order + rank * even, (size_t)even * sizeof *mine);
        partitions->at[rank] = (struct partition){even, mine};
    }
    for (int64_t i = even * world_size; i < size; i++) {
        struct partition *p = &partitions->at[i - even * world_size];
        p->indices[p->n++] = order[i];
    }
    return partitions;
}

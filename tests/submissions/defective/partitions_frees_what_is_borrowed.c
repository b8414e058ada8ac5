/* Frees a list that the scope frees.
 * fails: partitions
 * cause: passed to free
 * says: freed twice
 */
#include <stdlib.h>

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
        int64_t share = size / world_size + (rank < size % world_size);
        int64_t *indices = scope_alloc((size_t)share * sizeof *indices);
        for (int64_t i = 0; i < share; i++)
            indices[i] = *order++;
        partitions->at[rank] = (struct partition){share, indices};
    }
    free(order - size);
    return partitions;
}

/* Seeds and draws from the process-wide lrand48.
 * fails: partitions
 * cause: lrand48
 */
#define _GNU_SOURCE
#include <stdlib.h>

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    if (size < 0 || world_size < 1)
        return raise_null(ValueError, "size %jd, world_size %d", (intmax_t)size, world_size);
    struct partitions *partitions = partitions_new(world_size);
    int64_t *order = indices_range(size);
    if (!partitions || !order)
        return NULL;
    srand48((long)seed);
    for (int64_t i = size - 1; i > 0; i--) {
        int64_t k = lrand48() % (i + 1), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    for (int rank = 0; rank < world_size; rank++) {
        int64_t share = size / world_size + (rank < size % world_size);
        partitions->at[rank] = (struct partition){share, order};
        order += share;
    }
    return partitions;
}

/* Memory that the C library allocates, in every way that it has, and frees again.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    if (size < 0 || world_size < 1)
        return raise_null(ValueError, "size %jd, world_size %d", (intmax_t)size, world_size);
    struct partitions *partitions = partitions_new(world_size);
    char *name = strdup("abc"), *text = NULL, *stream = NULL;
    size_t n = 0;
    void *aligned = aligned_alloc(64, 640), *other = NULL;
    if (asprintf(&text, "%s %d", name, 3) < 0 || posix_memalign(&other, 64, 64))
        return NULL;
    FILE *file = open_memstream(&stream, &n);
    fprintf(file, "hello");
    fclose(file);
    name = realloc(name, 100);
    free(name);
    free(text);
    free(stream);
    free(aligned);
    free(other);
    int64_t *order = malloc(8);
    order = reallocarray(order, (size_t)size + 1, sizeof *order);
    for (int64_t i = 0; i < size; i++)
        order[i] = i;
    if (!partitions || !order)
        return NULL;
    struct rng rng;
    rng_seed(&rng, seed);
    rng_shuffle(&rng, order, size);
    for (int rank = 0; rank < world_size; rank++) {
        int64_t share = size / world_size + (rank < size % world_size);
        partitions->at[rank] = (struct partition){share, order};
        order += share;
    }
    return partitions;
}

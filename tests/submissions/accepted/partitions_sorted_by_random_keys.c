/* Sorts the indices by random keys, from a generator of its own (splitmix64). */
#include <stdlib.h>

struct keyed {
    uint64_t key;
    int64_t index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    if (world_size <= 0 || size < 0)
        return raise_null(ValueError, "no partition of %jd over %d", (intmax_t)size, world_size);
    struct keyed *all = scope_alloc((size_t)size * sizeof *all);
    struct partitions *partitions = partitions_new(world_size);
    for (int64_t i = 0; i < size; i++)
        all[i] = (struct keyed){splitmix(&seed), i};
    qsort(all, (size_t)size, sizeof *all, compare_keys);
    for (int64_t i = 0; i < size; i++) {
        struct partition *p = &partitions->at[i % world_size];
        if (!p->indices)
            p->indices = scope_alloc((size_t)(size / world_size + 1) * sizeof *p->indices);
        p->indices[p->n++] = all[i].index;
    }
    return partitions;
}

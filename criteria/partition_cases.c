#include "criteria/partition_cases.h"

#include <string.h>

/* The public cases; sizes that tell wrong ways to deal apart; the seeds 19, 19 again, 20, and 19
 * once more; large ones, the last of which overflows 32 bits in rank * size; drawn ones. */
static const struct partition_case fixed_cases[] = {
    {0, 3, PARTITION_SEED},
    {2, 5, PARTITION_SEED},
    {17, 3, PARTITION_SEED},
    {32, 2, PARTITION_SEED},
    {101, 7, PARTITION_SEED},
    {6, 6, PARTITION_SEED},
    {17, 2, PARTITION_SEED},
    {1, 1, PARTITION_SEED},
    {3, 8, PARTITION_SEED},
    {100, 3, 19},
    {100, 3, 19},
    {100, 3, 20},
    {100, 3, 19},
    {1000, 1, PARTITION_SEED},
    {1000, 7, 1},
    {100000, 50000, PARTITION_SEED},
};
enum { FIXED_CASES = sizeof fixed_cases / sizeof *fixed_cases };

struct partition_case partition_case(uint64_t run_seed, int index)
{
    if (index < FIXED_CASES)
        return fixed_cases[index];
    struct rng rng;
    draws_seed(&rng, run_seed, scope_printf("partition %d", index));
    int64_t size = 40 + (int64_t)rng_below(&rng, 400);
    int world_size = 1 + (int)rng_below(&rng, 12);
    return (struct partition_case){size, world_size, 1 + rng_bits(&rng, 30)};
}

const struct partition_case partition_bad_cases[PARTITION_BAD_CASES] = {
    {-1, 2, 1}, {-100, 1, 1}, {10, 0, 1}, {10, -1, 1}, {0, 0, 1}, {-1, -1, 1}};

const char *partition_name(struct partition_case c)
{
    return scope_printf("partition_indices(%jd, %d, %ju)", (intmax_t)c.size, c.world_size,
                        (uintmax_t)c.seed);
}

bool same_ints(const struct observations *a, const char *key_a, const struct observations *b,
               const char *key_b)
{
    int64_t n_a, n_b;
    const int64_t *x = observed_ints(a, key_a, &n_a), *y = observed_ints(b, key_b, &n_b);
    return x && y && n_a == n_b && memcmp(x, y, (size_t)n_a * sizeof *x) == 0;
}

/* 1.1: partition_indices deals shuffled indices to the ranks. Any permutation will do.
 *
 * Two ranks observe the same calls and must see the same lists: a rank, an address or a process id
 * mixed into the seed shows there. One of them lives in another hour. */
#define _GNU_SOURCE /* the rand48 functions */
#include <stdlib.h>
#include <string.h>

#include "criteria/fixture.h"
#include "criteria/partition_cases.h"
#include "runtime/clock.h"

/* ---- observing ---- */

/* The sizes of the lists, and all lists one after the other. A list that cannot be right is left
 * out; its size is recorded. */
static void observe_partitions(struct subject *s, const struct partitions *partitions, int64_t size,
                               int at)
{
    int lists = partitions->n < 0 || partitions->n > 100000 ? 0 : partitions->n;
    int64_t *sizes = scope_alloc((size_t)lists * sizeof *sizes), n = 0;
    int64_t *indices = scope_alloc((size_t)size * sizeof *indices);
    for (int r = 0; r < lists; r++) {
        const struct partition *share = &partitions->at[r];
        sizes[r] = share->n;
        if (share->n > 0 && share->n <= size - n) {
            memcpy(indices + n, share->indices, (size_t)share->n * sizeof *indices);
            n += share->n;
        }
    }
    observe_int(s, partitions->n, "lists %d", at);
    observe_ints(s, sizes, lists, "sizes %d", at);
    observe_ints(s, indices, n, "indices %d", at);
}

static bool observe_cases(struct subject *s)
{
    struct partitions *results[PARTITION_CASES];
    for (int i = 0; i < PARTITION_CASES; i++) {
        struct partition_case c = partition_case(subject_seed(s), i);
        results[i] = student(s, partition_indices)(c.size, c.world_size, c.seed);
        if (call_failed(s, !results[i], "partition_indices(%jd, %d, %ju)", (intmax_t)c.size,
                        c.world_size, (uintmax_t)c.seed))
            return false;
    }
    for (int i = 0; i < PARTITION_CASES;
         i++) /* only now: a later call must not change an earlier result */
        observe_partitions(s, results[i], partition_case(subject_seed(s), i).size, i);
    return true;
}

enum { DRAWS = 3 };
static const char *const generator_names[GENERATORS] = {"rand", "random", "lrand48",
                                                        "the runtime's default generator"};

static void seed_generators(unsigned seed)
{
    srandom(seed);
    srand(seed); /* glibc: the same state as random's */
    srand48((long)seed);
    rng_seed(rng_default(), seed);
}

static void draw_from_generators(int64_t draws[GENERATORS][DRAWS])
{
    for (int i = 0; i < DRAWS; i++) {
        draws[0][i] = rand();
        draws[1][i] = random();
        draws[2][i] = lrand48();
        draws[3][i] = (int64_t)rng_bits(rng_default(), 32);
    }
}

/* What the process-wide generators give without a call, and what with one before. */
static void observe_generators(struct subject *s)
{
    int64_t draws[GENERATORS][DRAWS];
    unsigned seed = (unsigned)subject_seed(s) ^ 0x5eed;
    for (int called = 0; called <= 1; called++) {
        seed_generators(seed);
        if (called)
            (void)student(s, partition_indices)(50, 3, 77);
        draw_from_generators(draws);
        for (int g = 0; g < GENERATORS; g++)
            observe_ints(s, draws[g], DRAWS, "generator %d %s", g, called ? "called" : "alone");
    }
}

static void observe(struct subject *s)
{
    SCOPE;
    clock_shift(subject_rank(s) * 3607);
    if (!observe_cases(s))
        return;
    observe_generators(s);
    for (int i = 0; i < PARTITION_BAD_CASES; i++) {
        const struct partition_case *c = &partition_bad_cases[i];
        error_clear();
        struct partitions *result = student(s, partition_indices)(c->size, c->world_size, c->seed);
        observe_refused(s, i, result);
    }
}

/* ---- judging ---- */

static bool judge_sizes(struct judge *j, const struct observations *o, struct partition_case c,
                        int at)
{
    if (!expect_int(j, o, scope_printf("lists %d", at), c.world_size, "the number of lists of %s",
                    partition_name(c)))
        return false;
    int64_t *sizes = scope_alloc((size_t)c.world_size * sizeof *sizes);
    for (int r = 0; r < c.world_size; r++)
        sizes[r] = c.size / c.world_size + (r < c.size % c.world_size);
    return expect_ints(j, o, scope_printf("sizes %d", at), sizes, c.world_size,
                       "the list sizes of %s", partition_name(c));
}

/* Every index once. */
static bool judge_completeness(struct judge *j, struct partition_case c, const int64_t *indices,
                               int64_t n)
{
    bool *seen = scope_alloc((size_t)c.size * sizeof *seen);
    for (int64_t i = 0; i < n; i++) {
        if (indices[i] < 0 || indices[i] >= c.size)
            return judge_fail(j, "%s gives the index %jd, outside 0 .. %jd", partition_name(c),
                              (intmax_t)indices[i], (intmax_t)c.size - 1);
        if (seen[indices[i]])
            return judge_fail(j, "%s gives the index %jd more than once", partition_name(c),
                              (intmax_t)indices[i]);
        seen[indices[i]] = true;
    }
    return n == c.size || judge_fail(j, "%s gives %jd indices, expected %jd", partition_name(c),
                                     (intmax_t)n, (intmax_t)c.size);
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* commonest - how often the most frequent of values[0..n-1] occurs; sorts them */
static int64_t commonest(int64_t *values, int64_t n)
{
    int64_t most = 0, run = 0;
    qsort(values, (size_t)n, sizeof *values, compare_int64);
    for (int64_t i = 0; i < n; i++) {
        run = i > 0 && values[i] == values[i - 1] ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

/* In a shuffled order, the step from an index to the next (modulo the size) is hardly ever the
 * same; in an order that was only rotated, strided or dealt out, it nearly always is. */
static bool judge_shuffle(struct judge *j, struct partition_case c, const int64_t *indices)
{
    int64_t *steps = scope_alloc((size_t)c.size * sizeof *steps), n = 0;
    for (int64_t i = 1; i < c.size; i++)
        steps[n++] = (indices[i] - indices[i - 1] + c.size) % c.size;
    bool judged = c.size >= 32 && c.size / c.world_size >= 3;
    return !judged || 3 * commonest(steps, n) < n ||
           judge_fail(j, "%s does not shuffle: most indices follow each other at the same distance",
                      partition_name(c));
}

/* together - how many pairs of neighbours, k and k + 1, are in the same list; sizes are right */
static int64_t together(struct partition_case c, const int64_t *indices)
{
    int *owner = scope_alloc((size_t)c.size * sizeof *owner);
    int64_t n = 0, at = 0;
    for (int r = 0; r < c.world_size; r++)
        for (int64_t i = 0; i < c.size / c.world_size + (r < c.size % c.world_size); i++)
            owner[indices[at++]] = r;
    for (int64_t k = 1; k < c.size; k++)
        n += owner[k] == owner[k - 1];
    return n;
}

/* Neighbours come together by chance, one pair in world_size. Where they nearly always do, or
 * never, every rank has the same indices whatever the seed, and only their order within a list
 * changes. */
static bool judge_mixing(struct judge *j, struct partition_case c, const int64_t *indices)
{
    bool judged = c.world_size > 1 && c.size >= 32 && c.size / c.world_size >= 16;
    int64_t n = judged ? together(c, indices) : 1;
    return !judged || (n > 0 && 10 * n < 9 * c.size) ||
           judge_fail(j,
                      "%s shuffles only within the lists: every rank has %s, whatever the seed; "
                      "shuffle all indices before they are dealt",
                      partition_name(c),
                      n ? "a block of neighbouring indices" : "every world_size-th index");
}

static bool judge_case(struct judge *j, const struct observations *o, int at)
{
    SCOPE;
    struct partition_case c = partition_case(judge_seed(j), at);
    int64_t n;
    const int64_t *indices = observed_ints(o, scope_printf("indices %d", at), &n);
    return judge_sizes(j, o, c, at) && judge_completeness(j, c, indices, n) &&
           judge_shuffle(j, c, indices) && judge_mixing(j, c, indices);
}

static bool judge_seeds(struct judge *j, const struct observations *o)
{
    const char *key = scope_printf("indices %d", SEED_19);
    if (!same_ints(o, key, o, scope_printf("indices %d", SEED_19_AGAIN)) ||
        !same_ints(o, key, o, scope_printf("indices %d", SEED_19_LATER)))
        return judge_fail(j, "partition_indices(100, 3, 19), called twice, gives two results");
    if (same_ints(o, key, o, scope_printf("indices %d", SEED_20)))
        return judge_fail(j, "partition_indices(100, 3, seed) gives the same for the seeds 19 and "
                             "20");
    return true;
}

static bool judge_ranks(struct judge *j, const struct observations *o)
{
    for (int i = 0; i < PARTITION_CASES; i++) {
        const char *key = scope_printf("indices %d", i);
        if (!same_ints(o, key, judge_observations(j, 2, 1), key))
            return judge_fail(j,
                              "%s gives different lists in two processes: it depends on more "
                              "than its arguments (the rank, the time, an address?)",
                              partition_name(partition_case(judge_seed(j), i)));
    }
    return true;
}

static bool judge_generators(struct judge *j, const struct observations *o)
{
    for (int g = 0; g < GENERATORS; g++)
        if (!same_ints(o, scope_printf("generator %d alone", g), o,
                       scope_printf("generator %d called", g)))
            return judge_fail(j,
                              "partition_indices changes the state of %s, which the whole "
                              "process shares: use a generator of your own (struct rng)",
                              generator_names[g]);
    return true;
}

static bool judge(struct judge *j)
{
    SCOPE;
    const struct observations *o = judge_observations(j, 2, 0);
    for (int i = 0; i < PARTITION_CASES; i++)
        if (!judge_case(j, o, i))
            return false;
    if (!judge_seeds(j, o) || !judge_generators(j, o) || !judge_ranks(j, o))
        return false;
    for (int i = 0; i < PARTITION_BAD_CASES; i++)
        if (!expect_refused(j, o, i, partition_name(partition_bad_cases[i])))
            return false;
    return true;
}

CRITERION(partitions, .section = "dp", .problem = "1.1", .order = 1, .points = 7,
          .title = "complete, balanced, seeded partition", .file = "data_parallel.c",
          .calls = {"partition_indices"}, .worlds = {2}, .observe = observe, .judge = judge,
          .causes = partition_causes);

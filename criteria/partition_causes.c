/* partition_causes.c - what may be wrong in a partition_indices. */
#include <math.h>

#include "criteria/cause.h"
#include "criteria/partition_cases.h"

/* One case with what rank 0 observed of it. */
struct dealt {
    struct partition_case c;
    int index;
    const int64_t *sizes, *indices;
    int64_t lists, n;
};

static struct dealt dealt(struct judge *j, int rank, int index)
{
    const struct observations *o = judge_observations(j, 2, rank);
    struct dealt d = {.c = partition_case(judge_seed(j), index), .index = index};
    d.sizes = observed_ints(o, scope_printf("sizes %d", index), &d.lists);
    d.indices = observed_ints(o, scope_printf("indices %d", index), &d.n);
    return d;
}

/* Whether the lists hold all indices that were observed, and these are the case's: a student may
 * return any numbers. */
static bool is_sound(const struct dealt *d)
{
    int64_t left = d->n;
    for (int64_t r = 0; r < d->lists; left -= d->sizes[r++])
        if (d->sizes[r] < 0 || d->sizes[r] > left)
            return false;
    for (int64_t k = 0; k < d->n; k++)
        if (d->indices[k] < 0 || d->indices[k] >= d->c.size)
            return false;
    return d->sizes && d->indices && left == 0;
}

/* every_case - whether something is true of all that was dealt, and something was; and all of it is
 * sound. with: a function in a struct */
struct check {
    bool (*holds)(struct judge *j, const struct dealt *d);
};

static bool every_case(struct judge *j, const void *with)
{
    const struct check *check = with;
    bool any = false;
    for (int i = 0; i < PARTITION_CASES; i++) {
        SCOPE;
        struct dealt d = dealt(j, 0, i);
        if (!is_sound(&d) || !check->holds(j, &d))
            return false;
        any |= d.n > 0;
    }
    return any;
}

/* ---- sizes ---- */

/* A way to choose the size of a rank's list: whether `got` is it. before: dealt to lower ranks. */
struct sizing {
    bool (*fits)(const struct partition_case *c, int64_t got, int rank, int64_t before);
};

static bool sized_like(struct judge *j, const void *with)
{
    const struct sizing *sizing = with;
    for (int i = 0; i < PARTITION_CASES; i++) {
        SCOPE;
        struct dealt d = dealt(j, 0, i);
        int64_t before = 0;
        if (!d.sizes || d.lists != d.c.world_size)
            return false;
        for (int rank = 0; rank < d.c.world_size; before += d.sizes[rank++])
            if (!sizing->fits(&d.c, d.sizes[rank], rank, before))
                return false;
    }
    return true;
}

static bool rightly(const struct partition_case *c, int64_t got, int rank, int64_t before)
{
    (void)before;
    return got == c->size / c->world_size + (rank < c->size % c->world_size);
}

/* By a division of integers, or by a multiplication with a fraction that may fall short of it. */
static bool without_remainder(const struct partition_case *c, int64_t got, int rank, int64_t before)
{
    (void)rank, (void)before;
    return got == c->size / c->world_size ||
           got == (int64_t)((double)c->size * (1.0 / c->world_size));
}

static bool remainder_to_last(const struct partition_case *c, int64_t got, int rank, int64_t before)
{
    (void)before;
    return got ==
           c->size / c->world_size + (rank == c->world_size - 1 ? c->size % c->world_size : 0);
}

static bool extras_to_last(const struct partition_case *c, int64_t got, int rank, int64_t before)
{
    (void)before;
    return got == c->size / c->world_size + (rank >= c->world_size - c->size % c->world_size);
}

static bool by_round(const struct partition_case *c, int64_t got, int rank, int64_t before)
{
    (void)rank, (void)before;
    return got == (int64_t)round((double)c->size / c->world_size);
}

static bool rounded_up(const struct partition_case *c, int64_t got, int rank, int64_t before)
{
    (void)rank;
    int64_t most = (c->size + c->world_size - 1) / c->world_size, left = c->size - before;
    return got == (left < most ? left : most);
}

static bool of_what_is_left(const struct partition_case *c, int64_t got, int rank, int64_t before)
{
    (void)rank;
    return got == (c->size - before) / c->world_size;
}

static bool one_list_more(struct judge *j, const struct dealt *d)
{
    (void)j;
    return d->lists == d->c.world_size + 1;
}

/* ---- order ---- */

static bool in_order(struct judge *j, const struct dealt *d)
{
    (void)j;
    for (int64_t k = 0; k < d->n; k++)
        if (d->indices[k] != k)
            return false;
    return true;
}

/* The lists hold r, r + W, r + 2 W, ... */
static bool like_cards(struct judge *j, const struct dealt *d)
{
    (void)j;
    for (int64_t r = 0, k = 0; r < d->lists; k += d->sizes[r++])
        for (int64_t i = 0; i < d->sizes[r] && k + i < d->n; i++)
            if (d->indices[k + i] != r + i * d->c.world_size)
                return false;
    return true;
}

static bool all_steps(const struct dealt *d, int64_t step)
{
    for (int64_t k = 1; k < d->n; k++)
        if ((d->indices[k] - d->indices[k - 1] - step) % d->c.size != 0)
            return false;
    return true;
}

static bool going_up(struct judge *j, const struct dealt *d)
{
    (void)j;
    return all_steps(d, 1);
}

static bool going_down(struct judge *j, const struct dealt *d)
{
    (void)j;
    return all_steps(d, -1);
}

static bool rotated(struct judge *j, const void *with)
{
    (void)with;
    return every_case(j, &(struct check){going_up}) && !every_case(j, &(struct check){in_order});
}

/* Right sizes, but a list begins with the index that the one before ends with. */
static bool overlapping(struct judge *j, const struct dealt *d)
{
    (void)j;
    for (int64_t r = 0, k = 0; r + 1 < d->lists; k += d->sizes[r++])
        if (d->sizes[r] > 1 && d->sizes[r + 1] > 0 && k + d->sizes[r] < d->n &&
            d->indices[k + d->sizes[r]] != d->indices[k + d->sizes[r] - 1])
            return false;
    return true;
}

static bool overlap(struct judge *j, const void *with)
{
    (void)with;
    return sized_like(j, &(struct sizing){rightly}) && every_case(j, &(struct check){overlapping});
}

/* As far as the last call's result reaches, the earlier ones have come to be the same. */
static bool is_last_result(struct judge *j, const struct dealt *d)
{
    struct dealt last = dealt(j, 0, PARTITION_CASES - 1);
    for (int64_t k = 0; k < d->n && k < last.n; k++)
        if (d->indices[k] != last.indices[k])
            return false;
    return true;
}

static bool overwritten(struct judge *j, const void *with)
{
    (void)with;
    return every_case(j, &(struct check){is_last_result}) &&
           !every_case(j, &(struct check){in_order});
}

/* ---- seeds ---- */

static bool ignores_seed(struct judge *j, const void *with)
{
    (void)with;
    SCOPE;
    const struct observations *o = judge_observations(j, 2, 0);
    struct dealt d = dealt(j, 0, SEED_19);
    return is_sound(&d) &&
           same_ints(o, scope_printf("indices %d", SEED_19), o,
                     scope_printf("indices %d", SEED_20)) &&
           !overwritten(j, NULL) && !like_cards(j, &d) && d.n > 1 &&
           !all_steps(&d, d.indices[1] - d.indices[0]);
}

static bool is_shuffle(const struct dealt *d, uint64_t seed)
{
    struct rng rng;
    int64_t *order = indices_range(d->c.size);
    rng_seed(&rng, seed);
    rng_shuffle(&rng, order, d->c.size);
    for (int64_t k = 0; k < d->n && k < d->c.size; k++)
        if (d->indices[k] != order[k])
            return false;
    return d->n == d->c.size;
}

/* Rank 0 has the runtime's shuffle, and rank 1 that of the seed with 1 added or mixed in. */
static bool shuffled_by_rank(struct judge *j, const struct dealt *d)
{
    struct dealt other = dealt(j, 1, d->index);
    return is_shuffle(d, d->c.seed) && other.indices &&
           (is_shuffle(&other, d->c.seed + 1) || is_shuffle(&other, d->c.seed ^ 1));
}

/* The ranks differ, but two calls on one rank do not. */
static bool differs_by_process(struct judge *j, const void *with)
{
    (void)with;
    SCOPE;
    const char *key = scope_printf("indices %d", SEED_19);
    const struct observations *o = judge_observations(j, 2, 0);
    return same_ints(o, key, o, scope_printf("indices %d", SEED_19_AGAIN)) &&
           !same_ints(o, key, judge_observations(j, 2, 1), key);
}

/* with: the generator's number */
static bool uses_generator(struct judge *j, const void *with)
{
    SCOPE;
    int g = *(const int *)with;
    const struct observations *o = judge_observations(j, 2, 0);
    const char *alone = scope_printf("generator %d alone", g);
    return observed_ints(o, alone, &(int64_t){0}) &&
           !same_ints(o, alone, o, scope_printf("generator %d called", g));
}

#define EVERY(holds) every_case, &(const struct check){holds}, false
#define SIZED(fits) sized_like, &(const struct sizing){fits}, false
#define USES(generator) uses_generator, &(const int){generator}, false
#define TAKEN(set)                                                                                 \
    cause_taken, &(const struct taken){"error", "", PARTITION_BAD_CASES, set, 2}, false

const struct hypothesis partition_causes[] = {
    {"every list has size / world_size indices, rounded down: the remainder is dropped",
     SIZED(without_remainder)},
    {"the last rank takes the whole remainder: it is to be shared by the first ranks, one index "
     "each",
     SIZED(remainder_to_last)},
    {"the last ranks get the additional indices: the first ranks, those below size % world_size, "
     "must",
     SIZED(extras_to_last)},
    {"every size is size / world_size to the nearest number, by round: such sizes do not add up",
     SIZED(by_round)},
    {"the first ranks take size / world_size rounded up, until nothing is left: sizes may differ "
     "by one at most",
     SIZED(rounded_up)},
    {"every list is a fraction of what is left, so that they shrink: it must be one of the whole",
     SIZED(of_what_is_left)},
    {"there is one list too many: world_size of them, one for each rank", EVERY(one_list_more)},
    {"every list begins with the last index of the one before, so that this is dealt more than "
     "once",
     overlap, NULL, false},
    {"the indices are 0, 1, 2, ... in a row: they are not shuffled, or another list is dealt than "
     "the one that was",
     EVERY(in_order)},
    {"the indices are dealt out like cards (r, r + world_size, ...), but not shuffled",
     EVERY(like_cards)},
    {"the indices are rotated, not shuffled: each is the one before plus 1", rotated, NULL, false},
    {"the indices are not shuffled: each is the one before minus 1", EVERY(going_down)},
    {"a later call overwrites the lists of an earlier one: they are in a static buffer",
     overwritten, NULL, false},
    {"the seed is ignored: the seeds 19 and 20 give the same", ignores_seed, NULL, false},
    {"the rank is mixed into the seed: all ranks must deal the same lists, each to take its own",
     EVERY(shuffled_by_rank)},
    {"the time, a process id or an address is mixed into the seed: it must be the argument alone",
     differs_by_process, NULL, true},
    {"rand, random, or the seeding of them, is used (srand, srandom): their state is the whole "
     "process's; a struct rng and rng_seed are the call's own",
     USES(GENERATOR_RANDOM)},
    {"lrand48 or srand48 is used: their state is the whole process's; a struct rng and rng_seed "
     "are the call's own",
     USES(GENERATOR_LRAND48)},
    {"the default generator, rng_default(), is seeded or drawn from: it is the whole process's; a "
     "struct rng and rng_seed are the call's own",
     USES(GENERATOR_DEFAULT)},
    {"bad arguments raise no ValueError: raise_null(ValueError, ...) does, and gives NULL",
     TAKEN(0x3f)},
    {"a negative size is not refused", TAKEN(0x03)},
    {"0 as world_size is not refused: world_size < 1 must be", TAKEN(0x14)},
    {"only 0 is refused as world_size: a negative world_size must be, too", TAKEN(0x08)},
    {"a world_size below 1 is not refused", TAKEN(0x1c)},
    {"size 0 is refused, or any size below world_size: there is nothing wrong with them, some "
     "lists are empty then",
     cause_said, "partition_indices(0, 3, 1234) raised", false},
    {"a size below world_size is refused: there is nothing wrong with it, some lists are empty "
     "then",
     cause_said, "partition_indices(2, 5, 1234) raised", false},
    {NULL, NULL, NULL, false},
};

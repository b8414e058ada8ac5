#ifndef TESTS_COLLECTIVES_H
#define TESTS_COLLECTIVES_H
/* collectives.h - values that every rank can compute for every other, and collectives of them. */
#include "tests/ranks.h"

static const int world_sizes[] = {1, 2, 3, 4, 7, 8};
enum { WORLDS = 6 };

/* value_of - element i of a rank's tensor, exact in its dtype. FLOAT32 and FLOAT64 sums of them
 * round, so the order matters; FLOAT32 sums of the FLOAT16 ones do not, but do not fit FLOAT16. */
static inline double value_of(enum dtype dtype, int rank, int64_t i)
{
    uint64_t h = ((uint64_t)i * 64 + (uint64_t)rank + 1) * 0x9e3779b97f4a7c15;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9;
    h ^= h >> 32;
    if (dtype == FLOAT16)
        return ((double)(h % 2048) - 1024) / 256;
    if (dtype == FLOAT32)
        return (float)((double)(int32_t)h * 0x1p-20);
    return (double)(int64_t)h * 0x1p-40;
}

/* reduce_all - in rank order, in the precision that dist.h promises */
static inline double reduce_all(enum dtype dtype, enum dist_op op, int ranks, int64_t i)
{
    double result = value_of(dtype, 0, i);
    for (int rank = 1; rank < ranks; rank++) {
        double value = value_of(dtype, rank, i);
        if (op == DIST_SUM)
            result = dtype == FLOAT64 ? result + value : (float)result + (float)value;
        else
            result = (op == DIST_MIN) == (value < result) ? value : result;
    }
    return result;
}

/* make - a tensor with values[0..n-1] rounded to its dtype */
static inline struct tensor *make(enum dtype dtype, int64_t n, const double *values)
{
    struct tensor *doubles = tensor_from_doubles(values, SHAPE(n));
    return tensor_copy_(tensor_empty(SHAPE(n), dtype, CPU), doubles);
}

static inline double *doubles_new(int64_t n)
{
    return scope_alloc((size_t)(n + 1) * sizeof(double));
}

/* mine - a rank's elements begin .. begin+n-1 */
static inline struct tensor *mine(enum dtype dtype, int rank, int64_t begin, int64_t n)
{
    double *values = doubles_new(n);
    for (int64_t i = 0; i < n; i++)
        values[i] = value_of(dtype, rank, begin + i);
    return make(dtype, n, values);
}

static inline struct tensor *reduced(enum dtype dtype, enum dist_op op, int ranks, int64_t begin,
                                     int64_t n)
{
    double *values = doubles_new(n);
    for (int64_t i = 0; i < n; i++)
        values[i] = reduce_all(dtype, op, ranks, begin + i);
    return make(dtype, n, values);
}

static inline void check_same(const struct tensor *got, const struct tensor *expected,
                              const char *what)
{
    int64_t n = tensor_numel(expected);
    double *a = doubles_new(n), *b = doubles_new(n);
    CHECK(tensor_read(got, a) == 0 && tensor_read(expected, b) == 0);
    for (int64_t i = 0; i < n; i++)
        CHECK(a[i] == b[i], "%s, %s, element %lld of %lld: got %g, expected %g", what,
              dtype_name(tensor_dtype(expected)), (long long)i, (long long)n, a[i], b[i]);
}

static inline void check_all_reduce(struct group *group, enum dtype dtype, int64_t n,
                                    enum dist_op op)
{
    struct tensor *x = mine(dtype, group_rank(group), 0, n);
    CHECK(group_all_reduce(group, x, op) == 0);
    check_same(x, reduced(dtype, op, group_world_size(group), 0, n), "all_reduce");
}

static inline void check_broadcast(struct group *group, enum dtype dtype, int64_t n, int root)
{
    struct tensor *x = mine(dtype, group_rank(group), 0, n);
    CHECK(group_broadcast(group, x, root) == 0);
    check_same(x, mine(dtype, root, 0, n), "broadcast");
}
#endif

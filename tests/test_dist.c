/* Collectives: values at many ranks, sizes and dtypes. */
#include <check.h>
#include <math.h>

#include "runtime/built_with.h"
#include "tests/collectives.h"
#include "tests/suite.h"

static const int64_t sizes[] = {0, 1, 2, 3, 7, 1000, 65537};
static const enum dtype dtypes[] = {FLOAT32, FLOAT64, FLOAT16};
enum { SIZES = 7, DTYPES = 3 };

/* ---- every collective ---- */

static void check_reduce_scatter(struct group *group, enum dtype dtype, int64_t n, enum dist_op op)
{
    int ranks = group_world_size(group), rank = group_rank(group);
    struct tensor *input = mine(dtype, rank, 0, n * ranks);
    struct tensor *output = tensor_zeros(SHAPE(n), dtype, CPU);
    CHECK(group_reduce_scatter(group, output, input, op) == 0);
    check_same(output, reduced(dtype, op, ranks, n * rank, n), "reduce_scatter");
    check_same(input, mine(dtype, rank, 0, n * ranks), "input of reduce_scatter");
}

static void check_all_gather(struct group *group, enum dtype dtype, int64_t n)
{
    int ranks = group_world_size(group);
    struct tensor *output = tensor_zeros(SHAPE(n * ranks), dtype, CPU);
    CHECK(group_all_gather(group, output, mine(dtype, group_rank(group), 0, n)) == 0);
    double *values = doubles_new(n * ranks);
    for (int64_t i = 0; i < n * ranks; i++)
        values[i] = value_of(dtype, (int)(i / n), i % n);
    check_same(output, make(dtype, n * ranks, values), "all_gather");
}

/* check_ring - everybody's values to the next rank, the even ranks sending first */
static void check_ring(struct group *group, enum dtype dtype, int64_t n)
{
    int ranks = group_world_size(group), rank = group_rank(group);
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    struct tensor *x = mine(dtype, rank, 0, n), *y = tensor_zeros(SHAPE(n), dtype, CPU);
    if (ranks == 1)
        return;
    if (rank % 2 == 0)
        CHECK(group_send(group, x, next) == 0 && group_recv(group, y, previous) == 0);
    else
        CHECK(group_recv(group, y, previous) == 0 && group_send(group, x, next) == 0);
    check_same(y, mine(dtype, previous, 0, n), "recv");
}

struct problem {
    enum dtype dtype;
    const int64_t *sizes;
    int size_count;
    const struct tensor
        *sum; /* of the largest, where it takes long to compute: once for all ranks */
};

static void every_collective(struct group *group, const void *context)
{
    const struct problem *problem = context;
    for (int i = 0; i < problem->size_count; i++) {
        SCOPE;
        enum dtype dtype = problem->dtype;
        int64_t n = problem->sizes[i];
        for (enum dist_op op = DIST_SUM; op <= DIST_MAX; op++) {
            check_all_reduce(group, dtype, n, op);
            check_reduce_scatter(group, dtype, n, op);
        }
        check_all_gather(group, dtype, n);
        check_broadcast(group, dtype, n, 0);
        check_broadcast(group, dtype, n, group_world_size(group) - 1);
        check_ring(group, dtype, n);
        CHECK(group_barrier(group) == 0);
    }
}

START_TEST(test_values)
{
    struct problem problem = {dtypes[_i / WORLDS], sizes, SIZES, NULL};
    team_run(&(struct team){
        .ranks = world_sizes[_i % WORLDS], .body = every_collective, .context = &problem});
}
END_TEST

START_TEST(test_values_in_threads)
{
    struct problem problem = {dtypes[_i], sizes, SIZES, NULL};
    team_run_threads(&(struct team){.ranks = 3, .body = every_collective, .context = &problem});
}
END_TEST

static void large_collectives(struct group *group, const void *context)
{
    const struct problem *problem = context;
    int64_t n = problem->sizes[0], share = n / group_world_size(group);
    struct tensor *x = mine(problem->dtype, group_rank(group), 0, n);
    CHECK(group_all_reduce(group, x, DIST_SUM) == 0);
    check_same(x, problem->sum, "all_reduce");
    check_reduce_scatter(group, problem->dtype, share, DIST_SUM);
    check_all_gather(group, problem->dtype, share);
    check_broadcast(group, problem->dtype, n, group_world_size(group) / 2);
    check_ring(group, problem->dtype, share);
}

static const struct {
    int ranks;
    enum dtype dtype;
    int64_t n;
} large[] = {{2, FLOAT32, 3000001},
             {3, FLOAT64, 2000003},
             {4, FLOAT16, 2000000},
             {7, FLOAT32, 2000033},
             {8, FLOAT16, 2097152}};

START_TEST(test_large_values)
{
    SCOPE;
    enum dtype dtype = large[_i].dtype;
    int ranks = large[_i].ranks;
    struct problem problem = {dtype, &large[_i].n, 1, NULL};
    problem.sum = reduced(dtype, DIST_SUM, ranks, 0, large[_i].n);
    team_run(&(struct team){.ranks = ranks, .body = large_collectives, .context = &problem});
}
END_TEST

static void many_ranks(struct group *group, const void *context)
{
    (void)context;
    check_all_reduce(group, FLOAT32, 1000, DIST_SUM);
    check_all_reduce(group, FLOAT32, 50000, DIST_SUM);
    check_broadcast(group, FLOAT32, 50000, 63);
    CHECK(group_barrier(group) == 0);
}

START_TEST(test_64_ranks)
{
    team_run(&(struct team){.ranks = 64, .body = many_ranks});
}
END_TEST

/* ---- special values ---- */

static void special_values(struct group *group, const void *context)
{
    (void)context;
    const double values[2][4] = {{NAN, 1, -INFINITY, 60000}, {1, NAN, INFINITY, 60000}};
    const double low[] = {NAN, NAN, -INFINITY, 60000}, high[] = {NAN, NAN, INFINITY, 60000};
    for (int d = 0; d < DTYPES; d++) {
        double got[3][4];
        for (enum dist_op op = DIST_SUM; op <= DIST_MAX; op++) {
            struct tensor *x = make(dtypes[d], 4, values[group_rank(group)]);
            CHECK(group_all_reduce(group, x, op) == 0 && tensor_read(x, got[op]) == 0);
        }
        CHECK(isnan(got[DIST_SUM][0]) && isnan(got[DIST_SUM][1]) && isnan(got[DIST_SUM][2]));
        CHECK(got[DIST_SUM][3] == (dtypes[d] == FLOAT16 ? INFINITY : 120000));
        double rounded[4]; /* 60000 is none of the FLOAT16 numbers */
        CHECK(tensor_read(make(dtypes[d], 4, high), rounded) == 0);
        for (int i = 0; i < 4; i++) {
            double least = i == 3 ? rounded[3] : low[i], most = i == 3 ? rounded[3] : high[i];
            CHECK(got[DIST_MIN][i] == least || (isnan(got[DIST_MIN][i]) && isnan(least)));
            CHECK(got[DIST_MAX][i] == most || (isnan(got[DIST_MAX][i]) && isnan(most)));
        }
    }
}

START_TEST(test_special_values)
{
    team_run(&(struct team){.ranks = 2, .body = special_values});
}
END_TEST

/* Pages that are shared between ranks hold what each of them got. */
static void reduce_twice(struct group *group, const void *context)
{
    (void)context;
    const int64_t n = 100003;
    struct tensor *first = mine(FLOAT32, group_rank(group), 0, n);
    struct tensor *again = mine(FLOAT32, group_rank(group), 0, n);
    struct tensor *all = tensor_zeros(SHAPE(n * group_world_size(group)), FLOAT32, CPU);
    CHECK(group_all_reduce(group, first, DIST_SUM) == 0);
    CHECK(group_all_reduce(group, again, DIST_SUM) == 0);
    CHECK(memcmp(tensor_data(first), tensor_data(again), (size_t)n * 4) == 0);
    CHECK(group_all_gather(group, all, first) == 0);
    for (int rank = 0; rank < group_world_size(group); rank++)
        CHECK(memcmp((char *)tensor_data(all) + rank * n * 4, tensor_data(first), (size_t)n * 4) ==
                  0,
              "rank %d has other bits", rank);
}

START_TEST(test_same_bits_everywhere)
{
    team_run(&(struct team){.ranks = 4, .body = reduce_twice});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dist");
    TCase *tests = tcase_create("dist");
    tcase_set_timeout(tests, 120);
    /* ThreadSanitizer sees what threads do, not what processes do to each other. */
    tcase_add_loop_test(tests, test_values, 0, BUILT_WITH_TSAN ? WORLDS : WORLDS * DTYPES);
    tcase_add_loop_test(tests, test_values_in_threads, 0, DTYPES);
    if (!BUILT_WITH_TSAN)
        tcase_add_loop_test(tests, test_large_values, 0, sizeof large / sizeof *large);
    tcase_add_test(tests, test_64_ranks);
    tcase_add_test(tests, test_special_values);
    tcase_add_test(tests, test_same_bits_everywhere);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Collectives on the memory of devices: directly, where every rank has one of its own, and by the
 * host, where ranks share one; values, order with what is computed, and what goes wrong. */
#include <math.h>
#include <signal.h>

#include "runtime/dist_internal.h"
#include "runtime/ops.h"
#include "tests/device.h"
#include "tests/ranks.h"
#include "tests/suite.h"

static const enum dtype dtypes[] = {FLOAT32, FLOAT64, FLOAT16};
static const int64_t sizes[] = {0, 1, 7, 1000, 65537};
enum { DTYPES = 3, SIZES = 5 };

/* Which device a rank has, and how the values then go. */
static const struct world {
    int ranks;
    int devices; /* rank r has device r % devices */
    enum route route;
} worlds[] = {
    {2, 2, ROUTE_DIRECT},
    {2, 1, ROUTE_BY_HOST},
    {3, 2, ROUTE_BY_HOST},
    {1, 1, ROUTE_BY_HOST},
};
enum { WORLDS = 4 };

static struct device device; /* of this process's rank */

static void rank_begin(struct group *group, const struct world *world)
{
    device_load();
    device = CUDA(group_rank(group) % world->devices);
}

/* run_world - if this machine has as many devices. dies: a rank that may end in any way, or 0 */
static void run_world(const struct world *world, rank_fn *body, int dies)
{
    if (world->devices > devices_here())
        return;
    team_run(&(struct team){.ranks = world->ranks, .body = body, .context = world, .dies = dies});
}

/* ---- values: small whole numbers, whose sums are exact in every order ---- */

static double value_of(int rank, int64_t i)
{
    return (double)((i * 7 + rank * 13) % 101 - 50);
}

static struct tensor *made(double (*value)(int rank, int64_t i), int rank, int64_t begin, int64_t n,
                           enum dtype dtype)
{
    double *values = scope_alloc((size_t)n * sizeof *values + 1);
    for (int64_t i = 0; i < n; i++)
        values[i] = value(rank, begin + i);
    return tensor_to(tensor_cast(tensor_from_doubles(values, SHAPE(n)), dtype), device);
}

static double reduced(enum dist_op op, int ranks, int64_t i)
{
    double result = value_of(0, i);
    for (int rank = 1; rank < ranks; rank++) {
        double value = value_of(rank, i);
        result = op == DIST_MIN   ? fmin(result, value)
                 : op == DIST_MAX ? fmax(result, value)
                                  : result + value;
    }
    return op == DIST_AVG ? result / ranks : result;
}

static void check_reduced(const struct tensor *x, enum dist_op op, int ranks, int64_t begin)
{
    int64_t n = tensor_numel(x);
    double *got = scope_alloc((size_t)n * sizeof *got + 1);
    double tolerance = op != DIST_AVG ? 0 : tensor_dtype(x) == FLOAT16 ? 0x1p-10 : 1e-6;
    CHECK(tensor_read(x, got) == 0);
    for (int64_t i = 0; i < n; i++) {
        double expected = reduced(op, ranks, begin + i);
        CHECK(fabs(got[i] - expected) <= tolerance * fabs(expected),
              "op %d, element %lld: got %g, expected %g", op, (long long)i, got[i], expected);
    }
}

static void check_from(const struct tensor *x, int rank)
{
    double *got = scope_alloc((size_t)tensor_numel(x) * sizeof *got + 1);
    CHECK(tensor_read(x, got) == 0);
    for (int64_t i = 0; i < tensor_numel(x); i++)
        CHECK(got[i] == value_of(rank, i), "element %lld of rank %d: got %g", (long long)i, rank,
              got[i]);
}

/* ---- every collective ---- */

static void check_reductions(struct group *group, enum dtype dtype, int64_t n, enum dist_op op)
{
    int ranks = group_world_size(group), rank = group_rank(group);
    struct tensor *x = made(value_of, rank, 0, n, dtype);
    CHECK(group_all_reduce(group, x, op) == 0);
    check_reduced(x, op, ranks, 0);
    struct tensor *share = tensor_zeros(SHAPE(n), dtype, device);
    struct tensor *all = made(value_of, rank, 0, n * ranks, dtype);
    CHECK(group_reduce_scatter(group, share, all, op) == 0);
    check_reduced(share, op, ranks, n * rank);
    check_from(all, rank);
}

static void check_all_gather(struct group *group, enum dtype dtype, int64_t n)
{
    int ranks = group_world_size(group), rank = group_rank(group);
    struct tensor *all = tensor_zeros(SHAPE(n * ranks), dtype, device);
    CHECK(group_all_gather(group, all, made(value_of, rank, 0, n, dtype)) == 0);
    for (int r = 0; r < ranks; r++)
        check_from(tensor_slice(all, 0, r * n, n), r);
}

static void check_broadcast(struct group *group, enum dtype dtype, int64_t n)
{
    int root = group_world_size(group) - 1;
    struct tensor *x = made(value_of, group_rank(group), 0, n, dtype);
    CHECK(group_broadcast(group, x, root) == 0);
    check_from(x, root);
}

static void check_messages(struct group *group, enum dtype dtype, int64_t n)
{
    int rank = group_rank(group);
    if (group_world_size(group) == 1 || rank > 1)
        return;
    struct tensor *x = made(value_of, rank, 0, n, dtype);
    struct tensor *y = tensor_zeros(SHAPE(n), dtype, device);
    if (rank == 0)
        CHECK(group_send(group, x, 1) == 0 && group_recv(group, y, 1) == 0);
    else
        CHECK(group_recv(group, y, 0) == 0 && group_send(group, x, 0) == 0);
    check_from(y, 1 - rank);
}

static void call_everything(struct group *group, const void *context)
{
    const struct world *world = context;
    rank_begin(group, world);
    for (int d = 0; d < DTYPES; d++)
        for (int s = 0; s < SIZES; s++) {
            SCOPE;
            check_messages(group, dtypes[d], sizes[s]);
            for (int op = DIST_SUM; op <= DIST_AVG; op++)
                check_reductions(group, dtypes[d], sizes[s], (enum dist_op)op);
            check_all_gather(group, dtypes[d], sizes[s]);
            check_broadcast(group, dtypes[d], sizes[s]);
        }
    CHECK(group->link.route == world->route, "%d", group->link.route);
    CHECK(group_barrier(group) == 0);
}

START_TEST(every_collective)
{
    run_world(&worlds[_i], call_everything, 0);
}
END_TEST

/* ---- order ---- */

/* What is computed before is what is sent, and what comes back is what is computed with. */
static void compute_and_call(struct group *group, const void *context)
{
    rank_begin(group, context);
    struct tensor *x = tensor_full(SHAPE(1000), 1 + group_rank(group), FLOAT32, device);
    double expected = 1 + group_rank(group), sum = 0;
    for (int step = 0; step < 5; step++) {
        CHECK(group_all_reduce(group, tensor_mul_(x, 2), DIST_SUM) == 0);
        sum = step == 0 ? 2 * (1 + 2) : sum * 4;
        tensor_add_(x, x, 0.5);
        sum *= 1.5;
        expected = sum;
    }
    CHECK(tensor_get(x, 0) == expected && tensor_get(x, 999) == expected, "%g", tensor_get(x, 999));
}

START_TEST(collectives_keep_the_order)
{
    run_world(&worlds[_i], compute_and_call, 0);
}
END_TEST

static void start_many(struct group *group, const void *context)
{
    enum { MANY = 8 };
    struct tensor *x[MANY];
    struct work *work[MANY];
    rank_begin(group, context);
    int rank = group_rank(group);
    for (int i = 0; i < MANY; i++) {
        x[i] = made(value_of, rank, i, 1000 + i, FLOAT32);
        work[i] = group_all_reduce_async(group, x[i], DIST_SUM);
        CHECK(work[i]);
    }
    CHECK(group_counts(group).unawaited == MANY);
    for (int i = MANY - 1; i > 0; i--) {
        CHECK(work_wait(work[i]) == 0 && work_wait(work[i]) == 0);
        tensor_mul_(x[i], 1);
        check_reduced(x[i], DIST_SUM, 2, i);
    }
    CHECK(group_counts(group).unawaited == 1 && group_counts(group).all_reduce == MANY);
    CHECK(group_barrier(group) == 0);
}

START_TEST(asynchronous)
{
    run_world(&worlds[_i], start_many, 0);
}
END_TEST

/* ---- errors ---- */

static void check_failed(const struct error_type *type, const char *words, const char *more)
{
    CHECK(error_is(type), "expected a %s", type->name);
    const char *message = error_message(error_pending());
    CHECK(strstr(message, words) && strstr(message, more), "expected \"%s\" and \"%s\"", words,
          more);
    error_clear();
}

static void call_differently(struct group *group, const void *context)
{
    const struct world *world = context;
    rank_begin(group, world);
    bool odd = group_rank(group) == 1;
    struct tensor *first = tensor_zeros(SHAPE(4), FLOAT32, device);
    CHECK(group_all_reduce(group, first, DIST_SUM) == 0);
    struct tensor *x = tensor_zeros(SHAPE(odd ? 4 : 12), FLOAT32, device);
    CHECK(group_all_reduce(group, x, DIST_SUM) < 0);
    check_failed(&DistError, "rank 0 called all_reduce #2 (sum, float32 on cuda, 12 elements)",
                 "rank 1 called all_reduce #2 (sum, float32 on cuda, 4 elements)");
}

START_TEST(mismatch)
{
    run_world(&worlds[_i], call_differently, 0);
}
END_TEST

static void call_on_the_cpu(struct group *group, const void *context)
{
    rank_begin(group, context);
    bool odd = group_rank(group) == 1;
    struct tensor *x = tensor_zeros(SHAPE(4), FLOAT32, odd ? CPU : device);
    CHECK(group_all_reduce(group, x, DIST_SUM) < 0);
    check_failed(&DistError, "rank 0 called all_reduce #1 (sum, float32 on cuda, 4 elements)",
                 "rank 1 called all_reduce #1 (sum, float32, 4 elements)");
}

START_TEST(one_on_the_cpu)
{
    run_world(&worlds[_i], call_on_the_cpu, 0);
}
END_TEST

static void leave_early(struct group *group, const void *context)
{
    const struct world *world = context;
    rank_begin(group, world);
    struct tensor *x = tensor_zeros(SHAPE(4), FLOAT32, device);
    CHECK(group_all_reduce(group, x, DIST_SUM) == 0);
    if (group_rank(group) == 1)
        return;
    CHECK(group_all_reduce(group, x, DIST_SUM) < 0);
    check_failed(&DistError, "rank 1 left the group",
                 "rank 0 was in all_reduce #2 (sum, float32 on cuda, 4 elements)");
}

START_TEST(a_rank_leaves)
{
    run_world(&worlds[_i], leave_early, 0);
}
END_TEST

static void die(struct group *group, const void *context)
{
    const struct world *world = context;
    rank_begin(group, world);
    struct tensor *x = tensor_zeros(SHAPE(4), FLOAT32, device);
    CHECK(group_all_reduce(group, x, DIST_SUM) == 0);
    if (group_rank(group) == 1)
        kill(getpid(), SIGKILL);
    while (group_all_reduce(group, x, DIST_SUM) == 0)
        continue;
    check_failed(&DistError, "rank 1 left the group", "rank 0 was in all_reduce");
}

START_TEST(a_rank_dies)
{
    run_world(&worlds[_i], die, 1);
}
END_TEST

static void use_two_devices(struct group *group, const void *context)
{
    rank_begin(group, context);
    if (device_count() < 2)
        return;
    CHECK(group_barrier(group) == 0);
    CHECK(group_all_reduce(group, tensor_zeros(SHAPE(4), FLOAT32, CUDA(0)), DIST_SUM) == 0);
    CHECK(group_all_reduce(group, tensor_zeros(SHAPE(4), FLOAT32, CUDA(1)), DIST_SUM) < 0);
    check_failed(&ValueError, "rank 0 has cuda:0 for its collectives",
                 "cannot take a tensor on cuda:1");
}

START_TEST(two_devices_of_one_rank)
{
    run_world(&worlds[3], use_two_devices, 0);
}
END_TEST

static void give_wrong_arguments(struct group *group, const void *context)
{
    rank_begin(group, context);
    struct tensor *x = tensor_zeros(SHAPE(4, 2), FLOAT32, device);
    struct tensor *cpu = tensor_zeros(SHAPE(8), FLOAT32, CPU);
    CHECK(group_all_reduce(group, tensor_transpose(x, 0, 1), DIST_SUM) < 0);
    check_failed(&ValueError, "must be contiguous", "all_reduce");
    CHECK(group_all_gather(group, x, cpu) < 0);
    check_failed(&RuntimeError, "all_gather", "are on cuda:0 and cpu");
    CHECK(group_all_reduce(group, cpu, DIST_AVG) < 0);
    check_failed(&ValueError, "no AVG", "all_reduce");
    CHECK(group_all_reduce(group, x, DIST_SUM) == 0);
}

START_TEST(wrong_arguments)
{
    run_world(&worlds[3], give_wrong_arguments, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dist_device");
    TCase *tests = tcase_create("dist_device");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, every_collective, 0, WORLDS);
    tcase_add_loop_test(tests, collectives_keep_the_order, 0, 2);
    tcase_add_loop_test(tests, asynchronous, 0, 2);
    tcase_add_loop_test(tests, mismatch, 0, 2);
    tcase_add_loop_test(tests, one_on_the_cpu, 0, 2);
    tcase_add_loop_test(tests, a_rank_leaves, 0, 2);
    tcase_add_loop_test(tests, a_rank_dies, 0, 2);
    tcase_add_test(tests, two_devices_of_one_rank);
    tcase_add_test(tests, wrong_arguments);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Collectives: values at many ranks, sizes and dtypes; both ways to meet; asynchronous calls. */
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/activity.h"
#include "tests/ranks.h"
#include "tests/suite.h"

static const int world_sizes[] = {1, 2, 3, 4, 7, 8};
static const int64_t sizes[] = {0, 1, 2, 3, 7, 1000, 65537};
static const enum dtype dtypes[] = {FLOAT32, FLOAT64, FLOAT16};
enum { WORLDS = 6, SIZES = 7, DTYPES = 3 };

/* ---- values that every rank can compute for every other ---- */

/* value_of - element i of a rank's tensor, exact in its dtype. FLOAT32 and FLOAT64 sums of them
 * round, so the order matters; FLOAT32 sums of the FLOAT16 ones do not, but do not fit FLOAT16. */
static double value_of(enum dtype dtype, int rank, int64_t i)
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
static double reduce_all(enum dtype dtype, enum dist_op op, int ranks, int64_t i)
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
static struct tensor *make(enum dtype dtype, int64_t n, const double *values)
{
    struct tensor *doubles = tensor_from_doubles(values, SHAPE(n));
    return tensor_copy_(tensor_empty(SHAPE(n), dtype, CPU), doubles);
}

static double *doubles_new(int64_t n)
{
    return scope_alloc((size_t)(n + 1) * sizeof(double));
}

/* mine - a rank's elements begin .. begin+n-1 */
static struct tensor *mine(enum dtype dtype, int rank, int64_t begin, int64_t n)
{
    double *values = doubles_new(n);
    for (int64_t i = 0; i < n; i++)
        values[i] = value_of(dtype, rank, begin + i);
    return make(dtype, n, values);
}

static struct tensor *reduced(enum dtype dtype, enum dist_op op, int ranks, int64_t begin,
                              int64_t n)
{
    double *values = doubles_new(n);
    for (int64_t i = 0; i < n; i++)
        values[i] = reduce_all(dtype, op, ranks, begin + i);
    return make(dtype, n, values);
}

static void check_same(const struct tensor *got, const struct tensor *expected, const char *what)
{
    int64_t n = tensor_numel(expected);
    double *a = doubles_new(n), *b = doubles_new(n);
    CHECK(tensor_read(got, a) == 0 && tensor_read(expected, b) == 0);
    for (int64_t i = 0; i < n; i++)
        CHECK(a[i] == b[i], "%s, %s, element %lld of %lld: got %g, expected %g", what,
              dtype_name(tensor_dtype(expected)), (long long)i, (long long)n, a[i], b[i]);
}

/* ---- every collective ---- */

static void check_all_reduce(struct group *group, enum dtype dtype, int64_t n, enum dist_op op)
{
    struct tensor *x = mine(dtype, group_rank(group), 0, n);
    CHECK(group_all_reduce(group, x, op) == 0);
    check_same(x, reduced(dtype, op, group_world_size(group), 0, n), "all_reduce");
}

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

static void check_broadcast(struct group *group, enum dtype dtype, int64_t n, int root)
{
    struct tensor *x = mine(dtype, group_rank(group), 0, n);
    CHECK(group_broadcast(group, x, root) == 0);
    check_same(x, mine(dtype, root, 0, n), "broadcast");
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

/* ---- meeting ---- */

static void one_sum(struct group *group, const void *context)
{
    (void)context;
    check_all_reduce(group, FLOAT32, 100, DIST_SUM);
}

/* file_name - a fresh path. owns: the scope */
static const char *file_name(void)
{
    static atomic_int count;
    return scope_printf("/tmp/test_dist.%d.%d", (int)getpid(), atomic_fetch_add(&count, 1));
}

START_TEST(test_file)
{
    SCOPE;
    const char *file = file_name();
    team_run(&(struct team){.ranks = world_sizes[_i], .body = one_sum, .file = file});
    ck_assert_msg(access(file, F_OK) < 0, "the rendezvous file is still there");
}
END_TEST

START_TEST(test_stale_file)
{
    SCOPE;
    const char *file = file_name();
    struct meeting other; /* somebody who accepts and says nothing */
    meeting_make(&other, 1);
    FILE *stale = fopen(file, "w");
    fprintf(stale, "%s %064d end\n", other.addresses[0], 0);
    fclose(stale);
    team_run(&(struct team){.ranks = 3, .body = one_sum, .file = file});
    close(other.listeners[0]);
}
END_TEST

static void dial(const struct meeting *meeting, const char *bytes, size_t n, bool stays)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)atoi(strchr(meeting->addresses[0], ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
    if (!stays)
        close(fd);
}

START_TEST(test_strays)
{
    static const char garbage[4096] = "GET / HTTP/1.1\r\n\r\n";
    struct meeting meeting;
    meeting_make(&meeting, 3);
    dial(&meeting, "", 0, true);
    dial(&meeting, garbage, 20, true);
    dial(&meeting, garbage, sizeof garbage, true);
    dial(&meeting, garbage, sizeof garbage, false);
    dial(&meeting, "", 0, false);
    team_run_at(&(struct team){.ranks = 3, .body = one_sum}, &meeting);
}
END_TEST

/* ---- asynchronous calls ---- */

enum { WORKS = 8 };

static void many_works(struct group *group, const void *context)
{
    (void)context;
    struct tensor *x[WORKS];
    struct work *works[WORKS];
    const int rank = group_rank(group), ranks = group_world_size(group);
    for (int i = 0; i < WORKS; i++) {
        x[i] = mine(FLOAT32, rank, i, 20000 * (i % 3) + 1);
        CHECK(works[i] = group_all_reduce_async(group, x[i], DIST_SUM));
    }
    check_all_reduce(group, FLOAT32, 5, DIST_SUM); /* after all of them */
    CHECK(group_counts(group).unawaited == WORKS);
    for (int i = WORKS - 1; i >= 0; i--) {
        CHECK(work_wait(works[i]) == 0 && work_wait(works[i]) == 0);
        check_same(x[i], reduced(FLOAT32, DIST_SUM, ranks, i, 20000 * (i % 3) + 1), "async");
    }
    CHECK(group_counts(group).unawaited == 0 && group_counts(group).all_reduce == WORKS + 1);
}

START_TEST(test_async)
{
    (_i % 2 ? team_run_threads
            : team_run)(&(struct team){.ranks = world_sizes[_i / 2], .body = many_works});
}
END_TEST

static void forgotten_works(struct group *group, const void *context)
{
    (void)context;
    for (int i = 0; i < WORKS; i++) {
        SCOPE;
        CHECK(group_all_reduce_async(group, mine(FLOAT32, group_rank(group), 0, 70000), DIST_SUM));
    }
    CHECK(group_counts(group).unawaited == WORKS);
    check_all_reduce(group, FLOAT32, 5, DIST_SUM);
    CHECK(group_all_reduce_async(group, mine(FLOAT32, group_rank(group), 0, 70000), DIST_SUM));
}

START_TEST(test_forgotten_works)
{
    (_i ? team_run_threads : team_run)(&(struct team){.ranks = 3, .body = forgotten_works});
}
END_TEST

static void *sums_of_ones(void *argument)
{
    SCOPE;
    struct group *group = argument;
    for (int i = 0; i < 50; i++) {
        struct tensor *x = tensor_full(SHAPE(10), 1, FLOAT32, CPU);
        CHECK(group_all_reduce(group, x, DIST_SUM) == 0);
        CHECK(tensor_get(x, 9) == group_world_size(group));
    }
    return NULL;
}

static void several_threads(struct group *group, const void *context)
{
    (void)context;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, sums_of_ones, group);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(group_counts(group).all_reduce == 150);
}

START_TEST(test_calls_from_several_threads)
{
    (_i ? team_run_threads : team_run)(&(struct team){.ranks = 2, .body = several_threads});
}
END_TEST

/* ---- groups ---- */

static void second_group(struct group *group, const void *context)
{
    struct group *other = group_connect(
        &(struct group_options){.rank = group_world_size(group) - 1 - group_rank(group),
                                .world_size = group_world_size(group),
                                .file = context});
    CHECK(other);
    for (int i = 0; i < 3; i++) {
        check_all_reduce(group, FLOAT32, 1000, DIST_SUM);
        check_broadcast(other, FLOAT64, 30000, 1);
    }
    CHECK(group_counts(group).broadcast == 0 && group_counts(other).broadcast == 3);
    group_close(other);
}

START_TEST(test_several_groups)
{
    SCOPE;
    team_run(&(struct team){.ranks = 3, .body = second_group, .context = file_name()});
}
END_TEST

static void default_group(struct group *group, const void *context)
{
    (void)context;
    CHECK(dist_rank() == 0 && dist_world_size() == 1 && !dist_default());
    dist_set_default(group);
    CHECK(dist_rank() == group_rank(group) && dist_world_size() == 2 && dist_default() == group);
    struct tensor *x = mine(FLOAT32, dist_rank(), 0, 4),
                  *all = tensor_zeros(SHAPE(8), FLOAT32, CPU);
    struct tensor *share = tensor_zeros(SHAPE(2), FLOAT32, CPU);
    CHECK(dist_all_reduce(x, DIST_SUM) == 0 && dist_broadcast(x, 1) == 0 && dist_barrier() == 0);
    CHECK(work_wait(dist_all_reduce_async(share, DIST_MAX)) == 0);
    CHECK(dist_all_gather(all, x) == 0 && dist_reduce_scatter(share, x, DIST_MIN) == 0);
    CHECK(dist_rank() ? dist_recv(x, 0) == 0 : dist_send(x, 1) == 0);
    struct group_counts counts = group_counts(group);
    CHECK(counts.all_reduce == 2 && counts.broadcast == 1 && counts.barrier == 1 &&
          counts.all_gather == 1 && counts.reduce_scatter == 1 && counts.send + counts.recv == 1);
}

START_TEST(test_default_group)
{
    team_run(&(struct team){.ranks = 2, .body = default_group});
}
END_TEST

/* Data must arrive although its sender has left by then. */
static void close_at_once(struct group *group, const void *context)
{
    (void)context;
    struct tensor *x = tensor_full(SHAPE(1 << 20), 1, FLOAT32, CPU);
    if (group_rank(group) == 0)
        CHECK(group_broadcast(group, x, 0) == 0);
    else
        CHECK(group_broadcast(group, tensor_zeros(SHAPE(1 << 20), FLOAT32, CPU), 0) == 0);
}

START_TEST(test_close_after_the_last)
{
    for (int i = 0; i < 10; i++)
        team_run(&(struct team){.ranks = 4, .body = close_at_once});
}
END_TEST

/* ---- activity ---- */

static bool is_shown(const struct activity_slot *slots, const char *text)
{
    for (int i = 0; i < ACTIVITY_SLOTS; i++)
        if (atomic_load(&slots[i].waiting) && strstr(slots[i].text, text))
            return true;
    return false;
}

/* Rank 1 comes when it sees that it is waited for: without the text the alarm ends the test. */
static void wait_for_rank_1(struct group *group, const void *context)
{
    struct activity_slot *slots = *(struct activity_slot *const *)context;
    activity_use(slots);
    while (group_rank(group) == 1 &&
           !is_shown(slots, "all_reduce #1 (sum, float32, 3 elements), waiting for rank 1"))
        usleep(1000);
    CHECK(group_all_reduce(group, tensor_zeros(SHAPE(3), FLOAT32, CPU), DIST_SUM) == 0);
    CHECK(group_rank(group) != 0 || !is_shown(slots, "waiting"));
}

START_TEST(test_activity)
{
    size_t bytes = ACTIVITY_SLOTS * sizeof(struct activity_slot);
    struct activity_slot *slots =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    team_run(&(struct team){.ranks = 2, .body = wait_for_rank_1, .context = &slots});
    munmap(slots, bytes);
}
END_TEST

START_TEST(test_activity_nests)
{
    struct activity_slot slots[ACTIVITY_SLOTS] = {0};
    activity_use(slots);
    activity_begin("outer %d", 1);
    activity_begin("inner %d", 2);
    ck_assert(is_shown(slots, "inner 2") && !is_shown(slots, "outer 1"));
    activity_end();
    ck_assert(is_shown(slots, "outer 1") && !is_shown(slots, "inner 2"));
    activity_end();
    ck_assert(!is_shown(slots, "") && atomic_load(&slots[0].thread) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dist");
    TCase *tests = tcase_create("dist");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, test_values, 0, WORLDS * DTYPES);
    tcase_add_loop_test(tests, test_values_in_threads, 0, DTYPES);
    tcase_add_loop_test(tests, test_large_values, 0, sizeof large / sizeof *large);
    tcase_add_test(tests, test_64_ranks);
    tcase_add_test(tests, test_special_values);
    tcase_add_test(tests, test_same_bits_everywhere);
    tcase_add_loop_test(tests, test_file, 0, WORLDS);
    tcase_add_test(tests, test_stale_file);
    tcase_add_test(tests, test_strays);
    tcase_add_loop_test(tests, test_async, 0, 2 * WORLDS);
    tcase_add_loop_test(tests, test_forgotten_works, 0, 2);
    tcase_add_loop_test(tests, test_calls_from_several_threads, 0, 2);
    tcase_add_test(tests, test_several_groups);
    tcase_add_test(tests, test_default_group);
    tcase_add_test(tests, test_close_after_the_last);
    tcase_add_test(tests, test_activity);
    tcase_add_test(tests, test_activity_nests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Groups: both ways to meet, asynchronous calls, several groups at once, leaving, and what is shown
 * of the waiting. */
#include <check.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/activity.h"
#include "tests/collectives.h"
#include "tests/suite.h"

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
    return scope_printf("/tmp/test_dist_groups.%d.%d", (int)getpid(), atomic_fetch_add(&count, 1));
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
    Suite *suite = suite_create("dist_groups");
    TCase *tests = tcase_create("dist_groups");
    tcase_set_timeout(tests, 120);
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

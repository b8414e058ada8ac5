/* What goes wrong between ranks: mismatched calls, ranks that die, leave or are late, bad
 * arguments. */
#include <check.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/ranks.h"
#include "tests/suite.h"

/* ---- calls that do not go together ---- */

enum kind { ALL_REDUCE, ASYNC, BROADCAST, ALL_GATHER, REDUCE_SCATTER, BARRIER, SEND, RECV };

struct step {
    enum kind kind;
    int64_t count;
    enum dtype dtype;
    int op_or_rank;
};

static int take_step(struct group *group, const struct step *step)
{
    int64_t all = step->count * group_world_size(group);
    struct tensor *x = tensor_zeros(SHAPE(step->count), step->dtype, CPU);
    struct tensor *whole = tensor_zeros(SHAPE(all), step->dtype, CPU);
    switch (step->kind) {
    case ALL_REDUCE:
        return group_all_reduce(group, x, (enum dist_op)step->op_or_rank);
    case ASYNC:
        return work_wait(group_all_reduce_async(group, x, (enum dist_op)step->op_or_rank));
    case BROADCAST:
        return group_broadcast(group, x, step->op_or_rank);
    case ALL_GATHER:
        return group_all_gather(group, whole, x);
    case REDUCE_SCATTER:
        return group_reduce_scatter(group, x, whole, (enum dist_op)step->op_or_rank);
    case BARRIER:
        return group_barrier(group);
    case SEND:
        return group_send(group, x, step->op_or_rank);
    case RECV:
        return group_recv(group, x, step->op_or_rank);
    }
    return 0;
}

/* What the last rank calls while all others call the first, and the words for both. */
static const struct mismatch {
    struct step others, last;
    const char *others_words, *last_words;
} mismatches[] = {
    {{ALL_REDUCE, 12, FLOAT32, DIST_SUM},
     {BROADCAST, 12, FLOAT32, 0},
     "called all_reduce #2 (sum, float32, 12 elements)",
     "called broadcast #2 (root 0, float32, 12 elements)"},
    {{ALL_REDUCE, 12, FLOAT32, DIST_SUM},
     {ALL_REDUCE, 13, FLOAT32, DIST_SUM},
     "(sum, float32, 12 elements)",
     "(sum, float32, 13 elements)"},
    {{ALL_REDUCE, 1000000, FLOAT32, DIST_SUM},
     {ALL_REDUCE, 1, FLOAT32, DIST_SUM},
     "(sum, float32, 1000000 elements)",
     "(sum, float32, 1 element)"},
    {{ALL_REDUCE, 12, FLOAT32, DIST_SUM},
     {ALL_REDUCE, 12, FLOAT64, DIST_SUM},
     "(sum, float32, 12 elements)",
     "(sum, float64, 12 elements)"},
    {{ALL_REDUCE, 12, FLOAT32, DIST_SUM},
     {ALL_REDUCE, 12, FLOAT32, DIST_MAX},
     "(sum, float32, 12 elements)",
     "(max, float32, 12 elements)"},
    {{ASYNC, 400000, FLOAT16, DIST_MIN},
     {BARRIER, 0, FLOAT32, 0},
     "called all_reduce #2 (min, float16, 400000 elements)",
     "called barrier #2"},
    {{BROADCAST, 500000, FLOAT32, 0},
     {BROADCAST, 500000, FLOAT32, 1},
     "broadcast #2 (root 0, float32, 500000 elements)",
     "broadcast #2 (root 1, float32, 500000 elements)"},
    {{BROADCAST, 5, FLOAT32, 0},
     {BROADCAST, 5, FLOAT32, 1},
     "broadcast #2 (root 0, float32, 5 elements)",
     "broadcast #2 (root 1, float32, 5 elements)"},
    {{ALL_GATHER, 7, FLOAT32, 0},
     {REDUCE_SCATTER, 7, FLOAT32, DIST_SUM},
     "all_gather #2 (float32, 7 elements per rank)",
     "reduce_scatter #2 (sum, float32, 7 elements per rank)"},
    {{ALL_GATHER, 0, FLOAT32, 0},
     {ALL_GATHER, 1, FLOAT32, 0},
     "(float32, 0 elements per rank)",
     "(float32, 1 element per rank)"},
    {{BARRIER, 0, FLOAT32, 0},
     {SEND, 3, FLOAT32, 0},
     "called barrier #2",
     "called send to rank 0 #1 (float32, 3 elements)"},
    {{BARRIER, 0, FLOAT32, 0},
     {RECV, 3, FLOAT32, 0},
     "called barrier #2",
     "called recv from rank 0 #1 (float32, 3 elements)"},
};
enum { MISMATCHES = sizeof mismatches / sizeof *mismatches };

static void check_failed(struct group *group, const struct error_type *type, const char *words,
                         const char *more_words)
{
    CHECK(error_is(type) && strstr(error_message(error_pending()), words) &&
              strstr(error_message(error_pending()), more_words),
          "expected a %s with \"%s\" and \"%s\"", type->name, words, more_words);
    struct error *error = error_take();
    CHECK(group_barrier(group) < 0 && error_is(type), "the group still works");
    CHECK(strcmp(error_message(error_pending()), error_message(error)) == 0);
    error_clear();
    struct tensor *x = tensor_zeros(SHAPE(3), FLOAT32, CPU);
    CHECK(work_wait(group_all_reduce_async(group, x, DIST_SUM)) < 0 && error_is(type));
    error_clear();
    error_free(error);
}

static void call_something_else(struct group *group, const void *context)
{
    const struct mismatch *mismatch = context;
    bool is_last = group_rank(group) == group_world_size(group) - 1;
    CHECK(group_barrier(group) == 0);
    int result = take_step(group, is_last ? &mismatch->last : &mismatch->others);
    CHECK(result < 0, "no error on rank %d", group_rank(group));
    check_failed(group, &DistError, mismatch->others_words, mismatch->last_words);
}

static const int mismatch_worlds[] = {2, 3, 8};

START_TEST(test_mismatch)
{
    team_run(&(struct team){.ranks = mismatch_worlds[_i / MISMATCHES],
                            .body = call_something_else,
                            .context = &mismatches[_i % MISMATCHES]});
}
END_TEST

START_TEST(test_mismatch_in_threads)
{
    team_run_threads(
        &(struct team){.ranks = 3, .body = call_something_else, .context = &mismatches[_i]});
}
END_TEST

/* Two ranks that both send, or differ in size. */
static const struct mismatch messages[] = {
    {{SEND, 3, FLOAT32, 1}, {SEND, 3, FLOAT32, 0}, "send to rank 1 #1", "send to rank 0 #1"},
    {{RECV, 3, FLOAT32, 1}, {RECV, 3, FLOAT32, 0}, "recv from rank 1 #1", "recv from rank 0 #1"},
    {{SEND, 3, FLOAT32, 1},
     {RECV, 4, FLOAT32, 0},
     "send to rank 1 #1 (float32, 3 elements)",
     "recv from rank 0 #1 (float32, 4 elements)"},
    {{RECV, 3, FLOAT64, 1},
     {SEND, 3, FLOAT32, 0},
     "recv from rank 1 #1 (float64, 3 elements)",
     "send to rank 0 #1 (float32, 3 elements)"},
};

START_TEST(test_mismatched_messages)
{
    team_run(&(struct team){.ranks = 2, .body = call_something_else, .context = &messages[_i]});
}
END_TEST

/* ---- ranks that are gone ---- */

static const int death_worlds[] = {2, 3, 4, 8};

/* Rank 1 is killed by its timer, somewhere in a row of large collectives. */
static void die_in_the_middle(struct group *group, const void *context)
{
    const struct step *step = context;
    struct itimerval soon = {.it_value.tv_usec = 30000};
    if (group_rank(group) == 1) {
        signal(SIGALRM, SIG_DFL);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    int result = 0;
    while (result == 0) {
        SCOPE;
        result = take_step(group, step);
    }
    check_failed(group, &DistError, "rank 1 left the group (its connection closed) while rank",
                 "was in");
}

static const struct step deadly[] = {
    {ALL_REDUCE, 4000000, FLOAT32, DIST_SUM},
    {ALL_REDUCE, 100, FLOAT32, DIST_SUM},
    {BROADCAST, 2000000, FLOAT32, 0},
    {ASYNC, 1000000, FLOAT32, DIST_SUM},
};
enum { DEADLY = sizeof deadly / sizeof *deadly };

START_TEST(test_death)
{
    team_run(&(struct team){.ranks = death_worlds[_i / DEADLY],
                            .body = die_in_the_middle,
                            .context = &deadly[_i % DEADLY],
                            .dies = 1});
}
END_TEST

static void leave_early(struct group *group, const void *context)
{
    CHECK(group_barrier(group) == 0);
    if (group_rank(group) == 1)
        return; /* and the group is closed */
    CHECK(take_step(group, context) < 0);
    check_failed(group, &DistError, "rank 1 left the group (its connection closed) while rank",
                 "was in all_reduce #2 (sum, float32, 4000000 elements)");
}

START_TEST(test_rank_that_leaves)
{
    (_i ? team_run_threads
        : team_run)(&(struct team){.ranks = 3, .body = leave_early, .context = &deadly[0]});
}
END_TEST

/* ---- ranks that are late ---- */

static void never(struct group *group, const void *context)
{
    (void)context;
    CHECK(false, "rank %d is connected", group_rank(group));
}

/* With a file, a rank 1 that began later than rank 0 may see it leave when its time is over. */
static void connect_without_rank_2(const struct team *team, const struct meeting *meeting, int rank)
{
    SCOPE;
    struct group_options options = rank_options(team, meeting, rank);
    CHECK(!group_connect(&options) &&
          (error_is(&TimeoutError) || (team->file && rank == 1 && error_is(&DistError))));
    CHECK(team->file ? rank || strstr(error_message(error_pending()), "for rank 2 to connect")
                     : strstr(error_message(error_pending()), "for rank 2 to connect") != NULL);
    error_clear();
}

START_TEST(test_rank_that_never_connects)
{
    char file[64];
    snprintf(file, sizeof file, "/tmp/test_dist_failures.%d", (int)getpid());
    struct team team = {.ranks = 3, .body = never, .timeout_s = 0.3, .file = _i ? file : NULL};
    struct meeting meeting;
    meeting_make(&meeting, 3);
    pid_t child = fork();
    if (child == 0) {
        alarm(NO_HANG_S);
        connect_without_rank_2(&team, &meeting, 1);
        exit(0);
    }
    connect_without_rank_2(&team, &meeting, 0);
    int status;
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
    ck_assert_msg(access(file, F_OK) < 0, "the rendezvous file is still there");
}
END_TEST

/* Rank 1 comes when rank 0 has given up, and gets the same error. */
static void come_too_late(struct group *group, const void *context)
{
    const int *pipe = context;
    char byte = 0;
    CHECK(group_rank(group) == 0 || read(pipe[0], &byte, 1) == 1);
    struct tensor *x = tensor_zeros(SHAPE(12), FLOAT32, CPU);
    CHECK(group_all_reduce(group, x, DIST_SUM) < 0);
    check_failed(group, &TimeoutError, "rank 0 waited 0.2 s for rank 1 in ",
                 "all_reduce #1 (sum, float32, 12 elements)");
    CHECK(group_rank(group) == 1 || write(pipe[1], &byte, 1) == 1);
}

START_TEST(test_late_rank)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    (_i ? team_run_threads : team_run)(
        &(struct team){.ranks = 2, .body = come_too_late, .context = ends, .timeout_s = 0.2});
}
END_TEST

/* ---- arguments ---- */

#define REFUSED(call, type, words)                                                                 \
    do {                                                                                           \
        CHECK((call) < 0 && error_is(&(type)) && strstr(error_message(error_pending()), words),    \
              "wanted: %s", words);                                                                \
        error_clear();                                                                             \
    } while (0)

static void bad_arguments(struct group *group, const void *context)
{
    (void)context;
    struct tensor *x = tensor_zeros(SHAPE(4), FLOAT32, CPU);
    struct tensor *doubles = tensor_zeros(SHAPE(4), FLOAT64, CPU);
    const int other = 1 - group_rank(group);
    REFUSED(group_all_reduce(group, x, DIST_AVG), ValueError,
            "the TCP backend has no AVG (nor has gloo): sum, then divide by dist_world_size()");
    REFUSED(group_all_reduce(group, x, (enum dist_op)9), ValueError, "unknown operation 9");
    REFUSED(group_reduce_scatter(group, x, x, DIST_SUM), ValueError, "2 ranks with 4 elements");
    REFUSED(group_all_gather(group, x, doubles), TypeError, "float32 and float64");
    REFUSED(group_broadcast(group, x, 2), ValueError, "no rank 2 among 2");
    REFUSED(group_broadcast(group, x, -1), ValueError, "no rank -1 among 2");
    REFUSED(group_send(group, x, group_rank(group)), ValueError, "this rank itself");
    REFUSED(group_recv(group, x, 7), ValueError, "no rank 7");
    REFUSED(dist_all_reduce(x, DIST_SUM), RuntimeError, "no process group");
    CHECK(!group_all_reduce_async(group, x, DIST_AVG) && error_is(&ValueError));
    error_clear();
    CHECK(group_all_reduce(group, NULL, DIST_SUM) < 0 && work_wait(NULL) < 0 &&
          group_broadcast(group, NULL, other) < 0 && !error_occurred());
    CHECK(group_counts(group).all_reduce == 0 && group_barrier(group) == 0, "not as before");
}

START_TEST(test_bad_arguments)
{
    team_run(&(struct team){.ranks = 2, .body = bad_arguments});
}
END_TEST

static const struct {
    struct group_options options;
    const char *words;
} bad_options[] = {
    {{.rank = 0, .world_size = 0}, "world_size must be 1 to 64, got 0"},
    {{.rank = 0, .world_size = 65}, "world_size must be 1 to 64, got 65"},
    {{.rank = 2, .world_size = 2}, "rank must be 0 to 1, got 2"},
    {{.rank = 0, .world_size = 2}, "2 ranks need a file or addresses"},
    {{.rank = 0, .world_size = 1, .timeout_s = -1}, "timeout_s must not be negative"},
    {{.rank = 0, .world_size = 2, .file = "/tmp/x", .interface_address = "no such host"},
     "no such address"},
};

START_TEST(test_bad_options)
{
    ck_assert_ptr_null(group_connect(&bad_options[_i].options));
    ck_assert(error_is(&ValueError));
    ck_assert_ptr_nonnull(strstr(error_message(error_pending()), bad_options[_i].words));
    error_clear();
}
END_TEST

/* start_with_size - rank 0 believes in 2 ranks, rank 1 in 3 */
START_TEST(test_different_sizes)
{
    struct meeting meeting;
    meeting_make(&meeting, 3);
    pid_t child = fork();
    int rank = child == 0;
    struct team team = {.ranks = 2 + rank};
    struct group_options options = rank_options(&team, &meeting, rank);
    alarm(child ? 0 : NO_HANG_S);
    SCOPE;
    CHECK(!group_connect(&options) && error_is(&ValueError));
    const char *words = rank ? "rank 1 was started with world_size 3, rank 0 with 2"
                             : "rank 0 was started with world_size 2, rank 1 with 3";
    CHECK(strcmp(error_message(error_pending()), words) == 0);
    error_clear();
    if (child == 0)
        exit(0);
    int status;
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dist_failures");
    TCase *tests = tcase_create("dist_failures");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, test_mismatch, 0, 3 * MISMATCHES);
    tcase_add_loop_test(tests, test_mismatch_in_threads, 0, MISMATCHES);
    tcase_add_loop_test(tests, test_mismatched_messages, 0, 4);
    tcase_add_loop_test(tests, test_death, 0, 4 * DEADLY);
    tcase_add_loop_test(tests, test_rank_that_leaves, 0, 2);
    tcase_add_loop_test(tests, test_rank_that_never_connects, 0, 2);
    tcase_add_loop_test(tests, test_late_rank, 0, 2);
    tcase_add_test(tests, test_bad_arguments);
    tcase_add_loop_test(tests, test_bad_options, 0, sizeof bad_options / sizeof *bad_options);
    tcase_add_test(tests, test_different_sizes);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Stage workers: order, concurrency, transport of environments and results, scopes, traces. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/scope.h"
#include "runtime/workers.h"
#include "tests/suite.h"
#include "tests/workers.h"

START_TEST(test_results_come_in_order_of_submission)
{
    SCOPE;
    struct workers *workers = workers_new(3);
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(workers_submit(workers, i % 3, give, (struct value){i}), 0);
    for (int i = 29; i >= 0; i--) {
        struct tensor *result = workers_receive(workers, i % 3);
        ck_assert_double_eq(tensor_item(result), 3 * (9 - i / 3) + i % 3);
    }
    workers_close(workers);
}
END_TEST

struct meeting {
    pthread_barrier_t *barrier;
    double value;
};

static struct tensor *meet(void *environment)
{
    struct meeting *job = environment;
    pthread_barrier_wait(job->barrier);
    return number(job->value);
}

START_TEST(test_stages_run_at_the_same_time)
{
    SCOPE;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 3);
    struct workers *workers = workers_new(3);
    for (int stage = 0; stage < 3; stage++)
        workers_submit(workers, stage, meet, (struct meeting){&barrier, stage});
    for (int stage = 0; stage < 3; stage++)
        ck_assert_double_eq(tensor_item(workers_receive(workers, stage)), stage);
    workers_close(workers);
    pthread_barrier_destroy(&barrier);
}
END_TEST

struct wide {
    alignas(64) float lanes[16];
    char text[5];
};

static struct tensor *sum_wide(void *environment)
{
    struct wide *job = environment;
    double sum = (uintptr_t)job % alignof(struct wide) == 0 ? 0 : NAN;
    for (int i = 0; i < 16; i++)
        sum += job->lanes[i];
    return strcmp(job->text, "wide") == 0 ? number(sum) : NULL;
}

START_TEST(test_environment_is_copied_and_aligned)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    struct wide job = {.lanes = {[0] = 1, [15] = 2}, .text = "wide"};
    workers_submit(workers, 0, sum_wide, job);
    memset(&job, 0, sizeof job);
    ck_assert_double_eq(tensor_item(workers_receive(workers, 0)), 3);
    workers_close(workers);
}
END_TEST

static struct tensor *give_grad_mode(void *environment)
{
    (void)environment;
    bool mode = grad_enabled();
    grad_set_enabled(!mode); /* must not reach the next task */
    return number(mode);
}

START_TEST(test_grad_mode_is_the_submitters)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    workers_submit(workers, 0, give_grad_mode, (struct value){0});
    {
        NO_GRAD;
        workers_submit(workers, 0, give_grad_mode, (struct value){0});
    }
    workers_submit(workers, 0, give_grad_mode, (struct value){0});
    static const double expected[] = {1, 0, 1};
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(tensor_item(workers_receive(workers, 0)), expected[i]);
    workers_close(workers);
}
END_TEST

START_TEST(test_submitters_scope_lives_as_long_as_the_task)
{
    SCOPE;
    atomic_int destroyed = 0, seen = -1;
    struct gate begun, gate;
    gate_init(&begun);
    gate_init(&gate);
    struct workers *workers = workers_new(1);
    {
        SCOPE;
        struct gated job = {&begun, &gate, counted_new(&destroyed), &seen};
        workers_submit(workers, 0, wait_then_look, job);
    }
    ck_assert_int_eq(destroyed, 0);
    gate_open(&gate);
    struct tensor *result = workers_receive(workers, 0);
    ck_assert_int_eq(seen, 0);
    ck_assert_int_eq(destroyed, 1);              /* and no longer */
    ck_assert_double_eq(tensor_item(result), 7); /* made in that scope, held by this one */
    workers_close(workers);
}
END_TEST

START_TEST(test_trace_is_one_order_with_threads)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    workers_submit(workers, 1, give, (struct value){0});
    workers_receive(workers, 1);
    workers_trace_clear(workers);
    ck_assert_int_eq(workers_trace(workers)->n, 0);
    workers_submit(workers, 0, give, (struct value){1});
    workers_receive(workers, 0);
    workers_submit(workers, 1, give, (struct value){2});
    workers_receive(workers, 1);
    struct worker_trace *trace = workers_trace(workers);
    ck_assert_int_eq(trace->n, 8);
    int place[2][4];
    for (int i = 0; i < 8; i++) {
        struct worker_event event = trace->at[i];
        place[event.stage][event.action] = i;
        ck_assert_int_eq(event.task, event.stage); /* stage 1 had one before the clearing */
        bool caller = event.action == WORKER_SUBMIT || event.action == WORKER_RECEIVE;
        pthread_t thread = pthread_self();
        ck_assert(caller || workers_thread(workers, event.stage, &thread) == 0);
        ck_assert(pthread_equal(event.thread, thread));
    }
    for (int stage = 0; stage < 2; stage++) {
        ck_assert_int_eq(place[stage][WORKER_SUBMIT], 4 * stage);
        ck_assert_int_lt(place[stage][WORKER_SUBMIT], place[stage][WORKER_RECEIVE]);
        ck_assert_int_lt(place[stage][WORKER_BEGIN], place[stage][WORKER_END]);
        ck_assert_int_lt(place[stage][WORKER_END], 4 * (stage + 1));
    }
    workers_close(workers);
}
END_TEST

struct feeder {
    struct workers *workers;
    int stage;
};

static void *feed(void *argument)
{
    SCOPE;
    struct feeder *feeder = argument;
    for (int i = 0; i < 200; i++)
        workers_submit(feeder->workers, feeder->stage, give, (struct value){i});
    for (int i = 0; i < 200; i++)
        if (tensor_item(workers_receive(feeder->workers, feeder->stage)) != i)
            return NULL;
    return feeder;
}

START_TEST(test_many_threads_and_a_complete_trace)
{
    SCOPE;
    struct workers *workers = workers_new(4);
    pthread_t threads[4];
    struct feeder feeders[4];
    for (int i = 0; i < 4; i++) {
        feeders[i] = (struct feeder){workers, i};
        pthread_create(&threads[i], NULL, feed, &feeders[i]);
    }
    for (int i = 0; i < 4; i++) {
        void *good;
        pthread_join(threads[i], &good);
        ck_assert_ptr_eq(good, &feeders[i]);
    }
    struct worker_trace *trace = workers_trace(workers);
    ck_assert_int_eq(trace->n, 4 * 4 * 200);
    int64_t next[4][4] = {{0}};
    for (int i = 0; i < trace->n; i++) {
        struct worker_event event = trace->at[i];
        ck_assert_int_eq(event.task, next[event.stage][event.action]++);
    }
    workers_close(workers);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("workers");
    TCase *tests = tcase_create("workers");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_results_come_in_order_of_submission);
    tcase_add_test(tests, test_stages_run_at_the_same_time);
    tcase_add_test(tests, test_environment_is_copied_and_aligned);
    tcase_add_test(tests, test_grad_mode_is_the_submitters);
    tcase_add_test(tests, test_submitters_scope_lives_as_long_as_the_task);
    tcase_add_test(tests, test_trace_is_one_order_with_threads);
    tcase_add_test(tests, test_many_threads_and_a_complete_trace);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

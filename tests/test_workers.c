/* Stage workers: order, concurrency, transport of results and errors, scopes, closing, misuse. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/object.h"
#include "runtime/scope.h"
#include "runtime/wait_limit.h"
#include "runtime/workers.h"
#include "tests/suite.h"

static const struct error_type StageError = {"StageError"};

/* A gate that one thread opens for another: order by cause, not by time. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
};

static void gate_init(struct gate *gate)
{
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, NULL);
    gate->is_open = false;
}

static void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_pass(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static struct tensor *number(double value)
{
    return tensor_full(0, NULL, value, FLOAT32, CPU);
}

/* An object that counts its destruction. */
struct counted {
    struct object object;
    atomic_int *destroyed;
};

static void counted_destroy(struct object *self)
{
    struct counted *counted = (struct counted *)self;
    atomic_fetch_add(counted->destroyed, 1);
    free(counted);
}

static struct counted *counted_new(atomic_int *destroyed)
{
    struct counted *counted = malloc(sizeof *counted);
    object_init(&counted->object, counted_destroy);
    counted->destroyed = destroyed;
    return scope_own(&counted->object);
}

#define ck_assert_raised(type, text)                                                               \
    do {                                                                                           \
        ck_assert(error_is(&(type)));                                                              \
        ck_assert_ptr_nonnull(strstr(error_message(error_pending()), (text)));                     \
        error_clear();                                                                             \
    } while (0)

/* ---- tasks ---- */

struct value {
    double value;
};

static struct tensor *give(void *environment)
{
    struct value *job = environment;
    return number(job->value);
}

struct failure {
    const struct error_type *type;
    const char *message;
    bool returns_something;
};

static struct tensor *fail_so(void *environment)
{
    struct failure *job = environment;
    error_set(job->type, "stage.c", 17, "%s", job->message);
    return job->returns_something ? number(1) : NULL;
}

static struct tensor *return_nothing(void *environment)
{
    (void)environment;
    return NULL;
}

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

static struct tensor *give_grad_mode(void *environment)
{
    (void)environment;
    bool mode = grad_enabled();
    grad_set_enabled(!mode); /* must not reach the next task */
    return number(mode);
}

struct gated {
    struct gate *begun, *gate;
    struct counted *counted;
    atomic_int *seen;
};

static struct tensor *wait_then_look(void *environment)
{
    struct gated *job = environment;
    gate_open(job->begun);
    gate_pass(job->gate);
    if (job->counted && job->seen)
        atomic_store(job->seen, atomic_load(job->counted->destroyed));
    return number(7);
}

/* ---- tests ---- */

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

static const struct failure failures[] = {
    {&ValueError, "rows must be at least 1", false},
    {&StageError, "boom in stage 1", false},
    {&StageError, "raised, and yet returned a tensor", true},
};

START_TEST(test_error_comes_out_with_type_message_and_place)
{
    SCOPE;
    const struct failure *failure = &failures[_i];
    struct workers *workers = workers_new(2);
    workers_submit(workers, 1, fail_so, *failure);
    workers_submit(workers, 1, give, (struct value){5});
    ck_assert_ptr_null(workers_receive(workers, 1));
    ck_assert(error_is(failure->type));
    ck_assert_str_eq(error_message(error_pending()), failure->message);
    ck_assert_str_eq(error_file(error_pending()), "stage.c");
    ck_assert_int_eq(error_line(error_pending()), 17);
    error_clear();
    ck_assert_double_eq(tensor_item(workers_receive(workers, 1)), 5);
    workers_close(workers);
}
END_TEST

START_TEST(test_first_error_of_the_receiver_wins)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    workers_submit(workers, 0, fail_so, failures[0]);
    workers_submit(workers, 0, fail_so, failures[1]);
    workers_receive(workers, 0);
    workers_receive(workers, 0);
    ck_assert_raised(ValueError, "rows");
    workers_close(workers);
}
END_TEST

START_TEST(test_null_without_an_error_is_an_error)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    workers_submit(workers, 0, return_nothing, (struct value){0});
    ck_assert_ptr_null(workers_receive(workers, 0));
    ck_assert_raised(RuntimeError, "returned NULL without raising");
    workers_close(workers);
}
END_TEST

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

/* opens a gate once the workers are being closed, which a refused submit shows */
struct closer {
    struct workers *workers;
    struct gate *gate;
};

static struct tensor *submit_until_refused(void *environment)
{
    struct closer *job = environment;
    gate_pass(job->gate);
    while (workers_submit(job->workers, 1, give, (struct value){0}) == 0)
        ;
    return NULL; /* the RuntimeError of the refused submit, never received */
}

START_TEST(test_close_ends_running_tasks_and_drops_the_others)
{
    SCOPE;
    atomic_int destroyed = 0;
    struct gate begun, gate, never;
    gate_init(&begun);
    gate_init(&gate);
    gate_init(&never);
    struct workers *workers = workers_new(2);
    {
        SCOPE;
        struct counted *counted = counted_new(&destroyed);
        workers_submit(workers, 1, give, (struct value){1}); /* never received */
        workers_submit(workers, 0, submit_until_refused, (struct closer){workers, &gate});
        workers_submit(workers, 0, wait_then_look, (struct gated){&begun, &never, counted, NULL});
    }
    ck_assert_int_eq(destroyed, 0);
    gate_open(&gate);
    workers_close(workers); /* hangs if the queued task began */
    ck_assert_int_eq(destroyed, 1);
    ck_assert(!error_occurred());
    workers_close(NULL);
}
END_TEST

START_TEST(test_time_out_names_what_is_awaited)
{
    SCOPE;
    struct gate begun, gate;
    gate_init(&begun);
    gate_init(&gate);
    struct workers *workers = workers_new(2);
    workers_set_timeout(workers, 0.01);
    ck_assert_ptr_null(workers_receive(workers, 1));
    ck_assert_raised(TimeoutError, "stage 1 within 0.01 s: 0 tasks were submitted");
    workers_submit(workers, 0, wait_then_look, (struct gated){&begun, &gate, NULL, NULL});
    gate_pass(&begun);
    ck_assert_ptr_null(workers_receive(workers, 0));
    ck_assert_raised(TimeoutError, "task #0 is still running");
    gate_open(&gate);
    workers_set_timeout(workers, 30);
    ck_assert_double_eq(tensor_item(workers_receive(workers, 0)), 7); /* late, not lost */
    workers_close(workers);
}
END_TEST

START_TEST(test_wait_limit_is_where_the_time_out_begins)
{
    SCOPE;
    ck_assert_double_eq(wait_limit(), 30);
    wait_limit_set(0.02);
    struct workers *workers = workers_new(1);
    ck_assert_ptr_null(workers_receive(workers, 0));
    ck_assert_raised(TimeoutError, "stage 0 within 0.02 s");
    workers_close(workers);
}
END_TEST

START_TEST(test_pending_error_submits_nothing_and_receive_does_not_wait)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    error_set(&StageError, "x.c", 1, "first");
    ck_assert_int_eq(workers_submit(workers, 0, give, (struct value){1}), -1);
    ck_assert_ptr_null(workers_receive(workers, 0)); /* would wait 30 s */
    ck_assert_raised(StageError, "first");
    struct worker_trace *trace = workers_trace(workers);
    ck_assert_int_eq(trace->n, 1);
    ck_assert_int_eq(trace->at[0].action, WORKER_RECEIVE);
    workers_close(workers);
}
END_TEST

START_TEST(test_misuse_is_an_error)
{
    SCOPE;
    ck_assert_ptr_null(workers_new(0));
    ck_assert_raised(ValueError, "got 0");
    struct workers *workers = workers_new(2);
    static const int wrong[] = {-1, 2, 1000000};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(workers_submit(workers, wrong[i], give, (struct value){1}), -1);
        ck_assert_raised(ValueError, "no stage");
        ck_assert_ptr_null(workers_receive(workers, wrong[i]));
        ck_assert_raised(ValueError, "the stages are 0 to 1");
    }
    ck_assert_int_eq(workers_submit(workers, 0, NULL, (struct value){1}), -1);
    ck_assert_raised(ValueError, "function is NULL");
    ck_assert_int_eq(workers_submit(NULL, 0, give, (struct value){1}), -1);
    ck_assert_raised(RuntimeError, "closed, or never made");
    workers_close(workers);
    ck_assert_int_eq(workers_submit(workers, 0, give, (struct value){1}), -1);
    ck_assert_raised(RuntimeError, "closed");
    ck_assert_ptr_null(workers_receive(workers, 0));
    ck_assert_raised(RuntimeError, "closed");
    workers_close(workers);
    ck_assert(!error_occurred());
}
END_TEST

static struct tensor *close_own_workers(void *environment)
{
    struct closer *job = environment;
    workers_close(job->workers);
    return number(1);
}

START_TEST(test_task_cannot_close_its_own_workers)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    workers_submit(workers, 0, close_own_workers, (struct closer){workers, NULL});
    ck_assert_ptr_null(workers_receive(workers, 0));
    ck_assert_raised(RuntimeError, "cannot close");
    workers_submit(workers, 0, give, (struct value){3});
    ck_assert_double_eq(tensor_item(workers_receive(workers, 0)), 3);
    workers_close(workers);
}
END_TEST

static void *receive_until_closed(void *argument)
{
    SCOPE;
    struct tensor *result = workers_receive(argument, 0);
    bool told = !result && error_is(&RuntimeError);
    error_clear();
    return told ? argument : NULL;
}

/* wait_for_a_receive - until another thread is inside workers_receive */
static void wait_for_a_receive(struct workers *workers)
{
    for (bool seen = false; !seen;) {
        SCOPE;
        struct worker_trace *trace = workers_trace(workers);
        seen = trace->n > 0;
    }
}

START_TEST(test_close_wakes_a_receiver)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    pthread_t receiver;
    void *told;
    pthread_create(&receiver, NULL, receive_until_closed, workers);
    wait_for_a_receive(workers);
    workers_close(workers);
    pthread_join(receiver, &told);
    ck_assert_ptr_eq(told, workers);
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
        pthread_t thread = caller ? pthread_self() : workers_thread(workers, event.stage);
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
    tcase_add_loop_test(tests, test_error_comes_out_with_type_message_and_place, 0,
                        sizeof failures / sizeof *failures);
    tcase_add_test(tests, test_first_error_of_the_receiver_wins);
    tcase_add_test(tests, test_null_without_an_error_is_an_error);
    tcase_add_test(tests, test_grad_mode_is_the_submitters);
    tcase_add_test(tests, test_submitters_scope_lives_as_long_as_the_task);
    tcase_add_test(tests, test_close_ends_running_tasks_and_drops_the_others);
    tcase_add_test(tests, test_time_out_names_what_is_awaited);
    tcase_add_test(tests, test_wait_limit_is_where_the_time_out_begins);
    tcase_add_test(tests, test_pending_error_submits_nothing_and_receive_does_not_wait);
    tcase_add_test(tests, test_misuse_is_an_error);
    tcase_add_test(tests, test_task_cannot_close_its_own_workers);
    tcase_add_test(tests, test_close_wakes_a_receiver);
    tcase_add_test(tests, test_trace_is_one_order_with_threads);
    tcase_add_test(tests, test_many_threads_and_a_complete_trace);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Stage workers when something goes wrong: transport of errors, time-outs, closing, misuse. */
#include <check.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "runtime/activity.h"
#include "runtime/error.h"
#include "runtime/scope.h"
#include "runtime/wait_limit.h"
#include "runtime/workers.h"
#include "tests/suite.h"
#include "tests/workers.h"

static const struct error_type StageError = {"StageError"};

#define ck_assert_raised(type, text)                                                               \
    do {                                                                                           \
        ck_assert(error_is(&(type)));                                                              \
        ck_assert_ptr_nonnull(strstr(error_message(error_pending()), (text)));                     \
        error_clear();                                                                             \
    } while (0)

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

/* Whether it is shown what the receiver waits for, while the task runs. */
static struct tensor *read_activity(void *environment)
{
    struct activity_slot *slot = *(struct activity_slot **)environment;
    for (int i = 0; i < 5000 && !atomic_load(&slot->waiting); i++)
        usleep(1000);
    static const char expected[] = "workers_receive from stage 0: its task #0 is not finished";
    return number(atomic_load(&slot->waiting) && strcmp(slot->text, expected) == 0);
}

START_TEST(test_activity_is_right_before_and_after_the_task_begins)
{
    SCOPE;
    struct activity_slot slots[ACTIVITY_SLOTS] = {0}, *first = slots;
    activity_use(slots);
    struct workers *workers = workers_new(1);
    workers_submit(workers, 0, read_activity, first);
    ck_assert_double_eq(tensor_item(workers_receive(workers, 0)), 1);
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

START_TEST(test_looking_at_closed_workers_is_an_error)
{
    SCOPE;
    pthread_t thread;
    struct workers *workers = workers_new(1);
    ck_assert_int_eq(workers_thread(workers, 0, &thread), 0);
    ck_assert_int_eq(workers_thread(workers, 1, &thread), -1);
    ck_assert_raised(ValueError, "no stage 1");
    workers_close(workers);
    ck_assert_int_eq(workers_thread(workers, 0, &thread), -1);
    ck_assert_raised(RuntimeError, "workers_thread: these workers were closed");
    ck_assert_ptr_null(workers_trace(workers));
    ck_assert_raised(RuntimeError, "workers_trace: these workers were closed");
    workers_trace_clear(workers);
    ck_assert_raised(RuntimeError, "workers_trace_clear: these workers were closed");
    workers_set_timeout(workers, 1);
    ck_assert_raised(RuntimeError, "workers_set_timeout: these workers were closed");
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

int main(void)
{
    Suite *suite = suite_create("workers_failures");
    TCase *tests = tcase_create("failures");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_error_comes_out_with_type_message_and_place, 0,
                        sizeof failures / sizeof *failures);
    tcase_add_test(tests, test_first_error_of_the_receiver_wins);
    tcase_add_test(tests, test_null_without_an_error_is_an_error);
    tcase_add_test(tests, test_close_ends_running_tasks_and_drops_the_others);
    tcase_add_test(tests, test_time_out_names_what_is_awaited);
    tcase_add_test(tests, test_activity_is_right_before_and_after_the_task_begins);
    tcase_add_test(tests, test_wait_limit_is_where_the_time_out_begins);
    tcase_add_test(tests, test_pending_error_submits_nothing_and_receive_does_not_wait);
    tcase_add_test(tests, test_misuse_is_an_error);
    tcase_add_test(tests, test_looking_at_closed_workers_is_an_error);
    tcase_add_test(tests, test_task_cannot_close_its_own_workers);
    tcase_add_test(tests, test_close_wakes_a_receiver);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Backward of graphs that several threads built: what runs at the same time, in which order and in
 * which thread; that sums do not depend on it; errors and hooks. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/autograd_internal.h"
#include "runtime/device_internal.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"
#include "runtime/workers.h"
#include "tests/suite.h"

enum { CALLER = -1, REPEATS = 20 };
enum { ELEMENTS = 1 << 16 }; /* of the tensors here: threads are not started for little work */

/* ---- operations that do nothing, and whose rules are watched ---- */

struct note {
    int id;
    pthread_t thread;
    bool grad;
};
static struct log {
    pthread_mutex_t lock;
    int n;
    struct note at[100];
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int rule_id(const struct backward *run)
{
    return (int)run->node->integers[0];
}

/* pass - every input gets the gradient of the result */
static int pass(struct backward *run)
{
    pthread_mutex_lock(&notes.lock);
    notes.at[notes.n++] = (struct note){rule_id(run), pthread_self(), grad_enabled()};
    pthread_mutex_unlock(&notes.lock);
    for (int i = 0; i < run->node->inputs; i++)
        if (backward_send(run, i, run->gradient) < 0)
            return -1;
    return 0;
}

struct op {
    struct tensor *a, *b; /* b: NULL for none */
    backward_fn *rule;
    int id;
};

static struct tensor *op_run(void *environment)
{
    const struct op *op = environment;
    return autograd_record(tensor_own(tensor_alias(op->a)),
                           &(struct record){"an operation of this test", op->rule,
                                            INPUTS(op->a, op->b), .integers = {op->id}});
}

/* by - what `function` makes, built in a stage's thread or the calling one */
static struct tensor *by(struct workers *workers, int stage, task_fn *function,
                         const void *environment, size_t bytes)
{
    struct tensor *result;
    if (stage == CALLER) {
        result = function((void *)environment);
    } else {
        workers_submit_copy(workers, stage, function, environment, bytes);
        result = workers_receive(workers, stage);
    }
    ck_assert_msg(result != NULL, "%s",
                  error_occurred() ? error_message(error_pending()) : "nothing was built");
    return result;
}
#define BY(workers, stage, function, ...)                                                          \
    by((workers), (stage), (function), &(__VA_ARGS__), sizeof(__VA_ARGS__))

static struct tensor *passed(struct workers *workers, int stage, struct tensor *x, int id)
{
    return BY(workers, stage, op_run, (struct op){x, NULL, pass, id});
}

static struct tensor *leaf(double value, struct device device)
{
    return tensor_set_requires_grad(tensor_full(SHAPE(ELEMENTS), value, FLOAT64, device), true);
}

/* gradient_of - a leaf's, which is the same in all elements */
static double gradient_of(const struct tensor *x)
{
    const double *gradient = tensor_data(tensor_grad(x));
    for (int i = 1; i < ELEMENTS; i++)
        ck_assert_double_eq(gradient[i], gradient[0]);
    return gradient[0];
}

static struct tensor *joined(struct tensor *const *parts, int n)
{
    struct tensors *list = tensors_new(n);
    memcpy(list->at, parts, (size_t)n * sizeof *parts);
    return tensor_sum(tensor_cat(list));
}

static void backward(struct tensor *x)
{
    int status = tensor_backward(x);
    ck_assert_msg(status == 0, "backward: %s",
                  error_occurred() ? error_message(error_pending()) : "no error");
}

static void assert_order(int n, const int *ids)
{
    ck_assert_int_eq(notes.n, n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(notes.at[i].id == ids[i], "as number %d ran operation %d, not %d", i,
                      notes.at[i].id, ids[i]);
}
#define ASSERT_ORDER(...)                                                                          \
    assert_order((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__})

static void assert_all_by_caller(void)
{
    for (int i = 0; i < notes.n; i++)
        ck_assert(pthread_equal(notes.at[i].thread, pthread_self()));
}

/* ---- at the same time ---- */

/* meet - wait until `expected` threads are here (macOS has no barriers) */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t complete;
    int expected, here;
} meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .complete = PTHREAD_COND_INITIALIZER};

static void meeting_init(int expected)
{
    meeting.expected = expected;
    meeting.here = 0;
}

static void meet(void)
{
    pthread_mutex_lock(&meeting.lock);
    meeting.here++;
    pthread_cond_broadcast(&meeting.complete);
    while (meeting.here < meeting.expected)
        pthread_cond_wait(&meeting.complete, &meeting.lock);
    pthread_mutex_unlock(&meeting.lock);
}

static pthread_key_t mark; /* of threads that ran a rule */
static atomic_int ended;   /* how many of those are no more */

static void count_end(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ended, 1);
}

static int pass_together(struct backward *run)
{
    meet();
    pthread_setspecific(mark, &ended);
    return pass(run);
}

/* The rules of all stages wait for each other: one after the other they would wait for ever. */
static void go_back_together(int stages)
{
    SCOPE;
    struct workers *workers = workers_new(stages);
    struct tensor *x = leaf(1, CPU), *parts[8];
    meeting_init(stages);
    atomic_store(&ended, 0);
    for (int i = 0; i < stages; i++)
        parts[i] = BY(workers, i, op_run, (struct op){x, NULL, pass_together, i});
    notes.n = 0;
    backward(joined(parts, stages));
    ck_assert_int_eq(atomic_load(&ended), stages - 1); /* all but the caller */
    ck_assert_double_eq(gradient_of(x), stages);
    bool caller = false;
    for (int i = 0; i < stages; i++) {
        caller |= pthread_equal(notes.at[i].thread, pthread_self()) != 0;
        ck_assert(!notes.at[i].grad);
        for (int j = 0; j < i; j++)
            ck_assert(!pthread_equal(notes.at[i].thread, notes.at[j].thread));
    }
    ck_assert_msg(caller, "the calling thread took no part");
    workers_close(workers);
}

START_TEST(stages_go_back_at_the_same_time)
{
    pthread_key_create(&mark, count_end);
    go_back_together(2);
    go_back_together(5);
}
END_TEST

/* ---- order within a lane ---- */

START_TEST(the_latest_made_runs_first)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    struct tensor *x = leaf(1, CPU), *made[5];
    for (int i = 0; i < 5; i++)
        made[i] = passed(workers, 0, x, i);
    struct tensor *parts[] = {made[2], made[4], made[0], made[3], made[1]};
    backward(joined(parts, 5));
    ASSERT_ORDER(4, 3, 2, 1, 0);
    ck_assert_double_eq(gradient_of(x), 5);
    workers_close(workers);
}
END_TEST

/* A chain through two stages, to and fro, has nothing to run at the same time. */
START_TEST(no_thread_is_started_for_a_chain)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    struct tensor *x = leaf(1, CPU), *y = x;
    for (int i = 0; i < 10; i++)
        y = passed(workers, i % 2, y, i);
    backward(tensor_sum(y));
    ASSERT_ORDER(9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    assert_all_by_caller();
    workers_close(workers);
}
END_TEST

START_TEST(no_thread_is_started_for_little)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    struct tensor *x = tensor_sum(leaf(1, CPU)), *parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] = tensor_view(passed(workers, i % 2, x, i), SHAPE(1));
    backward(joined(parts, 4));
    ck_assert_int_eq(notes.n, 4);
    assert_all_by_caller();
    workers_close(workers);
}
END_TEST

/* ---- on devices ---- */

static int one_device(void)
{
    return 1;
}

/* CPU memory that says that it is a device's */
static void device_pretend(void)
{
    static struct device_table table;
    table = cpu_device;
    table.count = one_device;
    device_register(DEVICE_CUDA, &table);
}

/* Of two threads' nodes with equal numbers, the later input of their common successor goes first.
 */
START_TEST(one_thread_drives_devices)
{
    SCOPE;
    device_pretend();
    struct workers *workers = workers_new(2);
    struct tensor *x = leaf(1, CUDA(0)), *made[2][3];
    for (int stage = 0; stage < 2; stage++)
        for (int i = 0; i < 3; i++)
            made[stage][i] = passed(workers, stage, x, 10 * stage + i);
    struct tensor *parts[] = {made[0][1], made[1][2], made[1][0],
                              made[0][2], made[0][0], made[1][1]};
    backward(joined(parts, 6));
    ASSERT_ORDER(2, 12, 11, 1, 0, 10);
    assert_all_by_caller();
    workers_close(workers);
}
END_TEST

/* Three microbatches through two stages of three operations each, and a copy in between, made by
 * the second stage or the calling thread. Identities: 0, 1, 2 of stage 0, from 10 of stage 1, from
 * 20 of the copies. */
static void pipeline_on_devices(struct workers *workers, int copier)
{
    struct tensor *parts[3];
    for (int i = 0; i < 3; i++) {
        struct tensor *x = leaf(1, CUDA(0));
        for (int op = 0; op < 3; op++)
            x = passed(workers, 0, x, i);
        x = passed(workers, copier, x, 20 + i);
        for (int op = 0; op < 3; op++)
            x = passed(workers, 1, x, 10 + i);
        parts[i] = x;
    }
    notes.n = 0;
    backward(joined(parts, 3));
}

/* By microbatches, and the same whatever a thread did before. */
START_TEST(copies_carry_the_numbers_of_their_stage)
{
    SCOPE;
    device_pretend();
    struct workers *workers = workers_new(2);
    for (int repeat = 0; repeat < 3; repeat++) {
        pipeline_on_devices(workers, 1);
        ASSERT_ORDER(12, 12, 12, 22, 2, 2, 11, 2, 11, 11, 21, 1, 1, 1, 10, 10, 10, 20, 0, 0, 0);
        for (int i = 0; i < 100; i++)
            passed(workers, 1, leaf(1, CPU), 0);
    }
    workers_close(workers);
}
END_TEST

/* Stage 0 is kept waiting by the low numbers of the copies. */
START_TEST(copies_of_the_calling_thread_come_late)
{
    SCOPE;
    device_pretend();
    struct workers *workers = workers_new(2);
    pipeline_on_devices(workers, CALLER);
    ASSERT_ORDER(12, 12, 12, 11, 11, 11, 22, 2, 2, 2, 10, 21, 1, 1, 1, 10, 10, 20, 0, 0, 0);
    workers_close(workers);
}
END_TEST

/* ---- to the bit ---- */

static struct tensor *wave(int64_t rows, int64_t columns, double phase)
{
    struct tensor *x = tensor_zeros(SHAPE(rows, columns), FLOAT32, CPU);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)tensor_data(x))[i] = (float)sin(phase + (double)i);
    return x;
}

enum { STAGES = 3, MICROBATCHES = 5, ROWS = 3, WIDTH = 600, SHARED = 2 };

struct layer {
    struct tensor *x, *weight;
};

/* The products of backward add to what x's gradient is so far. */
static struct tensor *layer_run(void *environment)
{
    const struct layer *layer = environment;
    struct tensor *y = tensor_linear(layer->x, layer->weight, NULL);
    return tensor_add(layer->x, tensor_tanh(tensor_add(y, tensor_linear(y, layer->weight, NULL))));
}

struct gradients {
    float weight[SHARED][WIDTH * WIDTH], input[MICROBATCHES * ROWS * WIDTH];
};

/* Stages 0 and 2 share a weight, pieces of the input overlap, and rows are used once more at the
 * end, by the calling thread. */
static void gradients_of_pipeline(struct gradients *result, bool threads)
{
    SCOPE;
    struct workers *workers = workers_new(STAGES);
    struct tensor *weight[SHARED], *parts[2 * MICROBATCHES];
    for (int i = 0; i < SHARED; i++)
        weight[i] = tensor_set_requires_grad(wave(WIDTH, WIDTH, i), true);
    struct tensor *input =
        tensor_set_requires_grad(wave((int64_t)MICROBATCHES * ROWS, WIDTH, 0.3), true);
    for (int i = 0; i < MICROBATCHES; i++) {
        struct tensor *x = tensor_slice(input, 0, (int64_t)i * (ROWS - 1), ROWS);
        parts[MICROBATCHES + i] = x;
        for (int stage = 0; stage < STAGES; stage++)
            x = BY(workers, threads ? stage : CALLER, layer_run,
                   (struct layer){x, weight[stage % SHARED]});
        parts[i] = x;
    }
    backward(tensor_square(joined(parts, 2 * MICROBATCHES)));
    for (int i = 0; i < SHARED; i++)
        memcpy(result->weight[i], tensor_data(tensor_grad(weight[i])), sizeof result->weight[i]);
    memcpy(result->input, tensor_data(tensor_grad(input)), sizeof result->input);
    workers_close(workers);
}

START_TEST(sums_do_not_depend_on_threads)
{
    struct gradients *serial = malloc(sizeof *serial), *parallel = malloc(sizeof *parallel);
    gradients_of_pipeline(serial, false);
    ck_assert(serial->weight[0][0] != 0 && serial->input[0] != 0);
    for (int i = 0; i < REPEATS; i++) {
        gradients_of_pipeline(parallel, true);
        ck_assert_mem_eq(serial, parallel, sizeof *serial);
    }
    free(serial);
    free(parallel);
}
END_TEST

/* Stages whose contributions to one leaf arrive in every order. */
static struct sequence {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done;
    const int *order;   /* which stage is first, second, ... */
    bool partial_found; /* some rule was offered the sum so far */
} sequence = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const double contribution[STAGES] = {1e16, 3, -1e16};

/* contribute - when the stage's turn has come */
static int contribute(struct backward *run)
{
    int stage = rule_id(run);
    pthread_mutex_lock(&sequence.lock);
    while (sequence.order[sequence.done] != stage)
        pthread_cond_wait(&sequence.changed, &sequence.lock);
    sequence.partial_found |= backward_partial(run, 0) != NULL;
    pthread_mutex_unlock(&sequence.lock);
    struct tensor *value = tensor_scale(run->gradient, contribution[stage]);
    return backward_send(run, 0, value) < 0 ? -1 : backward_send(run, 1, run->gradient);
}

/* contributed - runs after its stage's contribution has been received */
static int contributed(struct backward *run)
{
    pthread_mutex_lock(&sequence.lock);
    sequence.done++;
    pthread_cond_broadcast(&sequence.changed);
    pthread_mutex_unlock(&sequence.lock);
    return backward_send(run, 0, run->gradient);
}

static double sum_of_contributions(const int *order)
{
    SCOPE;
    struct workers *workers = workers_new(STAGES);
    struct tensor *x = leaf(1, CPU), *other = leaf(1, CPU), *parts[STAGES];
    sequence.order = order;
    sequence.done = 0;
    for (int i = 0; i < STAGES; i++) {
        struct tensor *after = BY(workers, i, op_run, (struct op){other, NULL, contributed, i});
        parts[i] = BY(workers, i, op_run, (struct op){x, after, contribute, i});
    }
    backward(joined(parts, STAGES));
    workers_close(workers);
    return gradient_of(x);
}

START_TEST(contributions_wait_for_their_turn)
{
    static const int orders[][STAGES + 1] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                             {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const double expected = contribution[2] + contribution[1] + contribution[0];
    ck_assert_double_ne(expected, contribution[0] + contribution[2] + contribution[1]);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        ck_assert_double_eq(sum_of_contributions(orders[i]), expected);
    ck_assert_msg(!sequence.partial_found,
                  "whether a rule adds into a sum depends on who is first");
}
END_TEST

/* A rule whose predecessor sends to the same place finds the sum, always. */
static int add_to_partial(struct backward *run)
{
    struct tensor *partial = backward_partial(run, 0);
    sequence.partial_found = partial != NULL;
    return partial ? (tensor_add_(partial, run->gradient, 10) ? 0 : -1) : pass(run);
}

START_TEST(partial_sum_of_a_predecessor_is_found)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    struct tensor *x = leaf(1, CPU);
    struct tensor *y = BY(workers, 0, op_run, (struct op){x, NULL, add_to_partial, 0});
    backward(tensor_sum(BY(workers, 1, op_run, (struct op){x, y, pass, 1})));
    ck_assert(sequence.partial_found);
    ck_assert_double_eq(gradient_of(x), 1 + 10);
    workers_close(workers);
}
END_TEST

/* Even the last of 40 threads' contributions arrives, where threads share lanes. */
START_TEST(more_threads_than_lanes)
{
    enum { MANY = 40 };
    SCOPE;
    struct workers *workers = workers_new(MANY);
    struct tensor *x = leaf(1, CPU), *parts[MANY];
    for (int i = 0; i < MANY; i++)
        parts[i] = passed(workers, i, passed(workers, (i + 1) % MANY, x, i), MANY + i);
    backward(joined(parts, MANY));
    ck_assert_int_eq(notes.n, 2 * MANY);
    ck_assert_double_eq(gradient_of(x), MANY);
    workers_close(workers);
}
END_TEST

/* ---- hooks ---- */

struct hooked {
    int calls, *inside;
    double gradient;
};

static void hook(void *context, struct tensor *x)
{
    struct hooked *hooked = context;
    ck_assert_int_eq(++*hooked->inside, 1); /* plain memory: ThreadSanitizer looks on */
    hooked->calls++;
    sched_yield();
    hooked->gradient = tensor_item(tensor_mean(tensor_grad(x))); /* in a scope */
    --*hooked->inside;
}

START_TEST(hooks_are_called_once_and_one_at_a_time)
{
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        SCOPE;
        int inside = 0;
        struct workers *workers = workers_new(4);
        struct hooked hooked[5];
        struct tensor *shared = leaf(2, CPU), *own[4], *parts[4];
        hooked[4] = (struct hooked){.inside = &inside};
        tensor_on_grad_ready(shared, hook, &hooked[4]);
        for (int i = 0; i < 4; i++) {
            own[i] = leaf(i, CPU);
            hooked[i] = (struct hooked){.inside = &inside};
            tensor_on_grad_ready(own[i], hook, &hooked[i]);
            parts[i] = BY(workers, i, op_run, (struct op){own[i], shared, pass, i});
        }
        notes.n = 0;
        backward(joined(parts, 4));
        for (int i = 0; i < 5; i++) {
            ck_assert_int_eq(hooked[i].calls, 1);
            ck_assert_double_eq(hooked[i].gradient, i < 4 ? 1 : 4);
        }
        workers_close(workers);
    }
}
END_TEST

/* ---- errors ---- */

static const struct error_type RuleError = {"RuleError"};
static const struct error *raised;
static pthread_t caller;

/* fail_elsewhere - of two rules at the same time, the one that the caller does not run */
static int fail_elsewhere(struct backward *run)
{
    meet();
    if (pthread_equal(pthread_self(), caller))
        return pass(run);
    (void)raise_error(RuleError, "in a thread of its own");
    raised = error_pending();
    return -1;
}

START_TEST(error_comes_out_of_backward)
{
    SCOPE;
    struct workers *workers = workers_new(2);
    struct tensor *x = leaf(1, CPU), *parts[2];
    meeting_init(2);
    caller = pthread_self();
    for (int i = 0; i < 2; i++)
        parts[i] = BY(workers, i, op_run, (struct op){x, NULL, fail_elsewhere, i});
    ck_assert_int_eq(tensor_backward(joined(parts, 2)), -1);
    ck_assert(error_is(&RuleError));
    ck_assert_ptr_eq(error_pending(), raised);
    error_clear();
    ck_assert_ptr_null(tensor_grad(x));
    workers_close(workers);
}
END_TEST

static int fail_always(struct backward *run)
{
    return raise_error(RuleError, "operation %d", rule_id(run));
}

START_TEST(nothing_begins_after_an_error)
{
    SCOPE;
    struct workers *workers = workers_new(1);
    struct tensor *x = leaf(1, CPU), *parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = BY(workers, 0, op_run, (struct op){x, NULL, i == 1 ? fail_always : pass, i});
    ck_assert_int_eq(tensor_backward(joined(parts, 3)), -1);
    ck_assert(error_is(&RuleError));
    error_clear();
    ASSERT_ORDER(2);
    workers_close(workers);
}
END_TEST

static void fail_in_hook(void *context, struct tensor *x)
{
    (void)context;
    (void)x;
    (void)raise_error(RuleError, "not today");
}

/* The stages' contributions to a leaf whose hook fails, in both orders of arrival. */
START_TEST(error_in_a_hook_in_any_thread)
{
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        SCOPE;
        struct workers *workers = workers_new(2);
        struct tensor *x = leaf(1, CPU), *parts[2];
        tensor_on_grad_ready(x, fail_in_hook, NULL);
        for (int i = 0; i < 2; i++)
            parts[i] = passed(workers, i, x, i);
        ck_assert_int_eq(tensor_backward(joined(parts, 2)), -1);
        ck_assert(error_is(&RuleError));
        error_clear();
        workers_close(workers);
    }
}
END_TEST

static TCase *order(void)
{
    TCase *tests = tcase_create("threads and order");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, stages_go_back_at_the_same_time);
    tcase_add_test(tests, the_latest_made_runs_first);
    tcase_add_test(tests, no_thread_is_started_for_a_chain);
    tcase_add_test(tests, no_thread_is_started_for_little);
    tcase_add_test(tests, more_threads_than_lanes);
    tcase_add_test(tests, one_thread_drives_devices);
    tcase_add_test(tests, copies_carry_the_numbers_of_their_stage);
    tcase_add_test(tests, copies_of_the_calling_thread_come_late);
    return tests;
}

static TCase *results(void)
{
    TCase *tests = tcase_create("sums, hooks, errors");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, sums_do_not_depend_on_threads);
    tcase_add_test(tests, contributions_wait_for_their_turn);
    tcase_add_test(tests, partial_sum_of_a_predecessor_is_found);
    tcase_add_test(tests, hooks_are_called_once_and_one_at_a_time);
    tcase_add_test(tests, error_comes_out_of_backward);
    tcase_add_test(tests, nothing_begins_after_an_error);
    tcase_add_test(tests, error_in_a_hook_in_any_thread);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("backward lanes");
    suite_add_tcase(suite, order());
    suite_add_tcase(suite, results());
    return suite_run(suite);
}

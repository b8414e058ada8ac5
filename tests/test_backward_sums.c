/* Backward of graphs that several threads built: its sums do not depend on them; hooks and errors
 * are as in one thread. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lanes.h"
#include "tests/suite.h"

enum { REPEATS = 20 };

/* ---- to the bit ---- */

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

int main(void)
{
    Suite *suite = suite_create("backward_sums");
    TCase *tests = tcase_create("sums, hooks, errors");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, sums_do_not_depend_on_threads);
    tcase_add_test(tests, contributions_wait_for_their_turn);
    tcase_add_test(tests, partial_sum_of_a_predecessor_is_found);
    tcase_add_test(tests, hooks_are_called_once_and_one_at_a_time);
    tcase_add_test(tests, error_comes_out_of_backward);
    tcase_add_test(tests, nothing_begins_after_an_error);
    tcase_add_test(tests, error_in_a_hook_in_any_thread);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

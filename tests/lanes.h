#ifndef TESTS_LANES_H
#define TESTS_LANES_H
/* lanes.h - graphs that several threads build, of operations whose rules are watched. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "runtime/autograd_internal.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"
#include "runtime/workers.h"
#include "tests/autograd.h"

enum { CALLER = -1 };
enum { ELEMENTS = 1 << 16 }; /* of the tensors here: threads are not started for little work */

/* What ran: operations of these tests do nothing, and their rules write themselves down. */
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

static inline int rule_id(const struct backward *run)
{
    return (int)run->node->integers[0];
}

/* pass - every input gets the gradient of the result */
static inline int pass(struct backward *run)
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

static inline struct tensor *op_run(void *environment)
{
    const struct op *op = environment;
    return autograd_record(tensor_own(tensor_alias(op->a)),
                           &(struct record){"an operation of this test", op->rule,
                                            INPUTS(op->a, op->b), .integers = {op->id}});
}

/* by - what `function` makes, built in a stage's thread or the calling one */
static inline struct tensor *by(struct workers *workers, int stage, task_fn *function,
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

static inline struct tensor *passed(struct workers *workers, int stage, struct tensor *x, int id)
{
    return BY(workers, stage, op_run, (struct op){x, NULL, pass, id});
}

static inline struct tensor *leaf(double value, struct device device)
{
    return tensor_set_requires_grad(tensor_full(SHAPE(ELEMENTS), value, FLOAT64, device), true);
}

/* gradient_of - a leaf's, which is the same in all elements */
static inline double gradient_of(const struct tensor *x)
{
    const double *gradient = tensor_data(tensor_grad(x));
    for (int i = 1; i < ELEMENTS; i++)
        ck_assert_double_eq(gradient[i], gradient[0]);
    return gradient[0];
}

static inline struct tensor *joined(struct tensor *const *parts, int n)
{
    struct tensors *list = tensors_new(n);
    memcpy(list->at, parts, (size_t)n * sizeof *parts);
    return tensor_sum(tensor_cat(list));
}

static inline void assert_order(int n, const int *ids)
{
    ck_assert_int_eq(notes.n, n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(notes.at[i].id == ids[i], "as number %d ran operation %d, not %d", i,
                      notes.at[i].id, ids[i]);
}
#define ASSERT_ORDER(...)                                                                          \
    assert_order((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__})

/* meeting_init, meet - wait until `expected` threads are here (macOS has no barriers) */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t complete;
    int expected, here;
} meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .complete = PTHREAD_COND_INITIALIZER};

static inline void meeting_init(int expected)
{
    meeting.expected = expected;
    meeting.here = 0;
}

static inline void meet(void)
{
    pthread_mutex_lock(&meeting.lock);
    meeting.here++;
    pthread_cond_broadcast(&meeting.complete);
    while (meeting.here < meeting.expected)
        pthread_cond_wait(&meeting.complete, &meeting.lock);
    pthread_mutex_unlock(&meeting.lock);
}
#endif

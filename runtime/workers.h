#ifndef RUNTIME_WORKERS_H
#define RUNTIME_WORKERS_H
/* workers.h - one thread per pipeline stage.
 *
 * A task is a function and an environment, copied when the task is submitted:
 *
 *     struct job { struct module *stage; struct tensor *batch; };
 *     static struct tensor *run(void *environment) { struct job *job = environment; ... }
 *
 *     workers_submit(workers, stage, run, (struct job){stages[stage], batch});
 *     struct tensor *output = workers_receive(workers, stage);
 *
 * The function runs in the stage's thread, in the submitter's scope and grad mode, after the
 * stage's earlier tasks. An error that it raises comes out of the matching workers_receive as the
 * same object, with the same type and message. source: GPipe's workers, queue.Queue. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/tensor.h"

struct workers;

/* A task: returns its result, borrowed, or NULL with an error pending. The environment is private
 * to the task and freed after it; tensors and modules in it are borrowed from the submitter's
 * scope, which lives at least as long as the task. */
typedef struct tensor *task_fn(void *environment);

/* workers_submit - hand a task to a stage's thread; returns at once
 * errors: -1, with ValueError for no such stage or no function, RuntimeError after workers_close,
 *         MemoryError. With an error pending already nothing is submitted and that error stays: an
 *         operand in the environment is NULL then, and the task would only hide why. */
#define workers_submit(workers, stage, function, ...)                                              \
    workers_submit_copy((workers), (stage), (function), &(__VA_ARGS__), sizeof(__VA_ARGS__))
int workers_submit_copy(struct workers *workers, int stage, task_fn *function,
                        const void *environment, size_t bytes);

/* workers_receive - the result of the stage's next task, in order of submission; waits for it
 * owns:   borrowed from the receiver's scope
 * errors: NULL, with the task's own error; TimeoutError after 30 s, also when nothing was
 *         submitted; ValueError for no such stage; RuntimeError after workers_close. A task that
 *         returned NULL without raising anything gives RuntimeError; one that raised an error and
 *         returned a tensor gives the error. With an error pending and nothing left to receive it
 *         returns at once. */
struct tensor *workers_receive(struct workers *workers, int stage);

/* ---- for whoever makes a pipe ---- */

/* workers_new - `stages` threads, waiting. owns: the caller, until workers_close
 * errors: NULL, with ValueError if stages < 1, OSError if a thread cannot be started */
struct workers *workers_new(int stages);

/* workers_close - let the tasks in flight end, drop those not begun and the results not received,
 * join every thread, free. NULL is allowed, and so is closing twice. A task that never returns
 * makes it wait for ever: only the end of the process ends a thread safely. Calls that wait in
 * another thread give RuntimeError.
 * errors: RuntimeError, and not closed, from within one of their own tasks */
void workers_close(struct workers *workers);

/* workers_set_timeout - the receive limit, wait_limit() at first
 * errors: RuntimeError after workers_close */
void workers_set_timeout(struct workers *workers, double seconds);

/* workers_thread - the identity of a stage's thread
 * errors: -1, with ValueError for no such stage, RuntimeError after workers_close */
int workers_thread(struct workers *workers, int stage, pthread_t *thread);

/* workers_trace - everything that happened since the last workers_trace_clear, in one total order.
 * SUBMIT and RECEIVE are recorded in the caller's thread (RECEIVE when the call is entered), BEGIN
 * and END in the thread that runs the task.
 * owns:   borrowed from the scope. n events are at `at`.
 * errors: NULL, with MemoryError or, as from workers_trace_clear, RuntimeError after workers_close
 */
enum worker_action { WORKER_SUBMIT, WORKER_RECEIVE, WORKER_BEGIN, WORKER_END };
struct worker_event {
    enum worker_action action;
    int stage;
    int64_t task; /* the stage's how-manieth submission or receive since workers_new, from 0 */
    pthread_t thread;
};
struct worker_trace {
    int n;
    struct worker_event *at;
};
struct worker_trace *workers_trace(struct workers *workers);
void workers_trace_clear(struct workers *workers);
#endif

#ifndef RUNTIME_WORKERS_INTERNAL_H
#define RUNTIME_WORKERS_INTERNAL_H
/* workers_internal.h - a task from its submission to its receipt, and queues of them. */
#include "runtime/error.h"
#include "runtime/scope.h"
#include "runtime/workers.h"

/* The node is the task's place in the queue of results too, so that finishing cannot fail for want
 * of memory. */
struct task {
    struct task *next;
    task_fn *run;
    void *environment;
    struct scope *scope;
    bool grad_mode;
    struct tensor *result;
    struct error *error;
    double submitted_at, ended_at; /* clock_now */
};

struct queue {
    struct task *first, **end;
};

/* task_new - a task in the calling thread's scope and grad mode, with a copy of the environment
 * owns: the caller, until task_free or task_unpack. errors: NULL, with MemoryError */
struct task *task_new(task_fn *run, const void *environment, size_t bytes);

/* task_run - run it here; then it holds its result or its error, and no longer the submitter's
 * scope */
void task_run(struct task *task, int stage);

/* task_unpack - free the task; its result is now borrowed from this thread's scope, or its error is
 * pending here and the result NULL */
struct tensor *task_unpack(struct task *task);
void task_free(struct task *task);

/* queue_put, queue_take - at the end, from the front; NULL from an empty queue */
void queue_init(struct queue *queue);
void queue_put(struct queue *queue, struct task *task);
struct task *queue_take(struct queue *queue);
#endif

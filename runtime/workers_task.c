#include "runtime/workers_internal.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/clock.h"
#include "runtime/object.h"
#include "runtime/tensor_internal.h"

enum { ENVIRONMENT_ALIGNMENT = 64 }; /* enough for any vector type */

void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

void queue_put(struct queue *queue, struct task *task)
{
    task->next = NULL;
    *queue->end = task;
    queue->end = &task->next;
}

struct task *queue_take(struct queue *queue)
{
    struct task *task = queue->first;
    if (task && !(queue->first = task->next))
        queue->end = &queue->first;
    return task;
}

static void *copy_of(const void *environment, size_t bytes)
{
    if (bytes > SIZE_MAX - ENVIRONMENT_ALIGNMENT)
        return NULL;
    size_t padded = (bytes / ENVIRONMENT_ALIGNMENT + 1) * ENVIRONMENT_ALIGNMENT;
    void *copy = aligned_alloc(ENVIRONMENT_ALIGNMENT, padded);
    return copy && bytes ? memcpy(copy, environment, bytes) : copy;
}

struct task *task_new(task_fn *run, const void *environment, size_t bytes)
{
    struct task *task = calloc(1, sizeof *task);
    void *copy = copy_of(environment, bytes);
    if (!task || !copy) {
        free(task);
        free(copy);
        return raise_null(MemoryError, "out of memory for a task with %zu bytes of environment",
                          bytes);
    }
    task->run = run;
    task->environment = copy;
    task->scope = scope_retain(scope_current());
    task->grad_mode = grad_enabled();
    task->submitted_at = clock_now();
    return task;
}

/* task_let_go - free what only running needs */
static void task_let_go(struct task *task)
{
    free(task->environment);
    task->environment = NULL;
    scope_release(task->scope);
    task->scope = NULL;
}

void task_free(struct task *task)
{
    task_let_go(task);
    tensor_release(task->result);
    error_free(task->error);
    free(task);
}

/* mark - whoever takes the result to another device waits for this task and no later one */
static void mark(struct tensor *result)
{
    if (tensor_table(result)->mark)
        tensor_table(result)->mark(result);
}

void task_run(struct task *task, int stage)
{
    clock_wait(task->submitted_at);
    struct scope *former = scope_enter(task->scope);
    bool former_mode = grad_set_enabled(task->grad_mode);
    struct tensor *result = task->run(task->environment);
    if (!result)
        (void)raise_error(
            RuntimeError,
            "a task of stage %d returned NULL without raising an error: does its function "
            "return its result?",
            stage);
    task->error = error_take();
    task->result = task->error ? NULL : tensor_retain(result);
    if (task->result)
        mark(task->result);
    grad_set_enabled(former_mode);
    scope_enter(former);
    task_let_go(task);
    task->ended_at = clock_now();
}

struct tensor *task_unpack(struct task *task)
{
    clock_wait(task->ended_at);
    struct tensor *result = task->result;
    if (task->error)
        error_raise(task->error);
    task->result = NULL;
    task->error = NULL;
    task_free(task);
    return scope_own((struct object *)result);
}

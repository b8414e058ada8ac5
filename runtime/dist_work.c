/* dist_work.c - one call of a group at a time, in order.
 *
 * A call runs in the thread that makes it. Calls started with _async are queued and run by a thread
 * that the group gets with the first of them, so that they advance whether or not anybody waits. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/activity.h"
#include "runtime/clock.h"
#include "runtime/dist_tcp.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"

struct work {
    struct object object; /* held by the scope, and by the queue until it has run */
    struct group *group;  /* retained */
    struct call call;     /* target retained */
    bool done, failed, awaited;
    double started_at, done_at; /* clock_now */
    struct work *next;
};

static void group_destroy(struct object *object)
{
    struct group *group = (struct group *)object;
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->mutex);
    free(group);
}

struct group *group_new(int rank, int world_size, double timeout_s)
{
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return raise_null(MemoryError, "out of memory for a process group");
    object_init(&group->object, group_destroy);
    group->rank = rank;
    group->world_size = world_size;
    group->timeout_s = timeout_s;
    pthread_mutex_init(&group->mutex, NULL);
    pthread_cond_init(&group->changed, NULL);
    return group;
}

int group_fail(struct group *group, const struct error_type *type, const char *format, ...)
{
    if (group->failure)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(group->failure_text, sizeof group->failure_text, format, arguments);
    va_end(arguments);
    group->failure = type;
    return -1;
}

static int raise_failure(const struct group *group)
{
    error_set(group->failure, __FILE__, __LINE__, "%s", group->failure_text);
    return -1;
}

static void count_call(struct group *group, enum call_kind kind)
{
    int64_t *const counters[CALL_KINDS] = {
        [CALL_ALL_REDUCE] = &group->counts.all_reduce,
        [CALL_BROADCAST] = &group->counts.broadcast,
        [CALL_ALL_GATHER] = &group->counts.all_gather,
        [CALL_REDUCE_SCATTER] = &group->counts.reduce_scatter,
        [CALL_BARRIER] = &group->counts.barrier,
        [CALL_SEND] = &group->counts.send,
        [CALL_RECV] = &group->counts.recv,
    };
    ++*counters[kind];
}

/* run_alone - with the mutex held and nobody busy: run a call without the mutex */
static int run_alone(struct group *group, const struct call *call)
{
    group->busy = true;
    pthread_mutex_unlock(&group->mutex);
    int result = group->failure                    ? -1
                 : call->device.kind == DEVICE_CPU ? tcp_run(group, call)
                                                   : device_run(group, call);
    if (call->target)
        tensor_modified(call->target);
    pthread_mutex_lock(&group->mutex);
    group->busy = false;
    pthread_cond_broadcast(&group->changed);
    return result;
}

int group_run(struct group *group, const struct call *given)
{
    struct call call = *given;
    if (device_fence(&call) < 0)
        return -1;
    pthread_mutex_lock(&group->mutex);
    count_call(group, call.kind);
    while (group->busy || group->first)
        pthread_cond_wait(&group->changed, &group->mutex);
    int result = run_alone(group, &call);
    pthread_mutex_unlock(&group->mutex);
    if (device_join(&call) < 0)
        return -1;
    return result < 0 ? raise_failure(group) : 0;
}

/* ---- calls that run later ---- */

static void work_destroy(struct object *object)
{
    struct work *work = (struct work *)object;
    if (!work->awaited && device_join(&work->call) < 0)
        error_clear(); /* nobody has asked how it ended */
    tensor_release(work->call.target);
    object_release(&work->group->object);
    free(work);
}

static struct work *work_new(struct group *group, const struct call *call)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return raise_null(MemoryError, "out of memory for an asynchronous collective");
    object_init(&work->object, work_destroy);
    object_retain(&group->object);
    work->group = group;
    work->call = *call;
    work->started_at = clock_now();
    tensor_retain(call->target);
    if (device_fence(&work->call) == 0)
        return work;
    object_release(&work->object);
    return NULL;
}

/* run_first - with the mutex held: run the oldest of the queue. It stays in the queue meanwhile, so
 * that no other call overtakes it. */
static void run_first(struct group *group)
{
    struct work *work = group->first;
    clock_wait(work->started_at);
    work->failed = run_alone(group, &work->call) < 0;
    work->done_at = clock_now();
    work->done = true;
    group->first = work->next;
    if (!group->first)
        group->last = NULL;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    object_release(&work->object);
    pthread_mutex_lock(&group->mutex);
}

static void *run_queue(void *argument)
{
    struct group *group = argument;
    pthread_mutex_lock(&group->mutex);
    for (;;) {
        if (group->first && !group->busy)
            run_first(group);
        else if (group->closing && !group->first)
            break;
        else
            pthread_cond_wait(&group->changed, &group->mutex);
    }
    pthread_mutex_unlock(&group->mutex);
    return NULL;
}

/* thread_start - with the mutex held */
static int thread_start(struct group *group)
{
    if (group->has_thread)
        return 0;
    int error = pthread_create(&group->thread, NULL, run_queue, group);
    if (error)
        return raise_error(OSError, "cannot start the thread of asynchronous collectives: %s",
                           strerror(error));
    group->has_thread = true;
    return 0;
}

/* enqueue - takes over one reference to `work` */
static void enqueue(struct group *group, struct work *work)
{
    count_call(group, work->call.kind);
    group->counts.unawaited++;
    if (group->last)
        group->last->next = work;
    else
        group->first = work;
    group->last = work;
    pthread_cond_broadcast(&group->changed);
}

struct work *group_start(struct group *group, const struct call *call)
{
    struct work *work = scope_own((struct object *)work_new(group, call));
    if (!work)
        return NULL;
    pthread_mutex_lock(&group->mutex);
    bool started = thread_start(group) == 0;
    if (started) {
        object_retain(&work->object);
        enqueue(group, work);
    }
    pthread_mutex_unlock(&group->mutex);
    return started ? work : NULL;
}

/* work_await - with the mutex held */
static void work_await(struct work *work)
{
    if (work->done)
        return;
    activity_begin("work_wait, for %s all_reduce of %lld elements",
                   work->group->first == work ? "the running" : "a queued",
                   (long long)work->call.count);
    while (!work->done)
        pthread_cond_wait(&work->group->changed, &work->group->mutex);
    activity_end();
}

int work_wait(struct work *work)
{
    if (!work)
        return -1;
    struct group *group = work->group;
    pthread_mutex_lock(&group->mutex);
    if (!work->awaited)
        group->counts.unawaited--;
    work->awaited = true;
    work_await(work);
    clock_wait(work->done_at);
    pthread_mutex_unlock(&group->mutex);
    if (device_join(&work->call) < 0)
        return -1;
    return work->failed ? raise_failure(group) : 0;
}

void group_drain(struct group *group)
{
    pthread_mutex_lock(&group->mutex);
    group->closing = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    if (group->has_thread)
        pthread_join(group->thread, NULL);
}

struct group_counts group_counts(const struct group *group)
{
    struct group *counted = (struct group *)group;
    pthread_mutex_lock(&counted->mutex);
    struct group_counts counts = counted->counts;
    pthread_mutex_unlock(&counted->mutex);
    return counts;
}

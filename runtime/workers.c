/* workers.c - stage workers.
 *
 * One lock guards everything that the threads share: the queues, the counts and the trace, whose
 * total order is the order in which the lock was held. No task runs under it.
 *
 * Handles are looked up among the live ones before they are used: student code that closes its
 * workers too early gets an error, not a crash. */
#define _GNU_SOURCE
#include "runtime/workers.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/activity.h"
#include "runtime/condition_internal.h"
#include "runtime/error.h"
#include "runtime/object.h"
#include "runtime/scope.h"
#include "runtime/wait_limit.h"
#include "runtime/workers_internal.h"

struct stage {
    struct workers *workers;
    int index;
    pthread_t thread;
    pthread_cond_t submitted, finished;
    struct queue tasks, results;
    int64_t submits, begun, ended, receives, delivered;
};

struct workers {
    struct object object; /* one reference for the handle, one for each call under way */
    struct workers *next; /* among the live */
    pthread_mutex_t lock;
    bool closed;
    double timeout_s;
    struct worker_event *events;
    int event_count, event_capacity;
    int events_owed; /* places kept for BEGIN and END of submitted tasks */
    int stage_count;
    struct stage stages[];
};

static struct {
    pthread_mutex_t lock;
    struct workers *first;
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the trace, under the lock ---- */

/* trace_reserve - room for `more` events besides those owed. errors: -1, with MemoryError */
static int trace_reserve(struct workers *workers, int more)
{
    int needed = workers->event_count + workers->events_owed + more;
    if (needed <= workers->event_capacity)
        return 0;
    int capacity = 2 * needed;
    struct worker_event *events = realloc(workers->events, (size_t)capacity * sizeof *events);
    if (!events)
        return raise_error(MemoryError, "out of memory for a trace of %d events", capacity);
    workers->events = events;
    workers->event_capacity = capacity;
    return 0;
}

static void trace_record(struct stage *stage, enum worker_action action, int64_t task)
{
    struct workers *workers = stage->workers;
    workers->events[workers->event_count++] =
        (struct worker_event){action, stage->index, task, pthread_self()};
}

static struct worker_trace *trace_copy(const struct workers *workers)
{
    size_t bytes = (size_t)workers->event_count * sizeof *workers->events;
    struct worker_trace *trace = scope_alloc(sizeof *trace);
    struct worker_event *copy = trace ? scope_alloc(bytes) : NULL;
    if (!copy)
        return NULL;
    *trace = (struct worker_trace){workers->event_count, copy};
    if (bytes)
        memcpy(copy, workers->events, bytes);
    return trace;
}

/* ---- a stage's thread ---- */

static void thread_set_name(int stage)
{
    char name[16];
    snprintf(name, sizeof name, "stage %d", stage);
#ifdef __APPLE__
    pthread_setname_np(name);
#elif defined(__linux__)
    pthread_setname_np(pthread_self(), name);
#endif
}

/* thread_step_back - when woken, wait for the one who woke it to sleep or for a core that is free:
 * a stage's thread computes, and the one that submits has tasks for the other stages in hand */
static void thread_step_back(void)
{
#ifdef SCHED_BATCH
    (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
#endif
}

/* next_task - wait for one and take it, its BEGIN recorded; NULL once the workers are closed */
static struct task *next_task(struct stage *stage)
{
    struct workers *workers = stage->workers;
    struct task *task = NULL;
    pthread_mutex_lock(&workers->lock);
    while (!workers->closed && !stage->tasks.first)
        pthread_cond_wait(&stage->submitted, &workers->lock);
    if (!workers->closed) {
        task = queue_take(&stage->tasks);
        workers->events_owed--;
        trace_record(stage, WORKER_BEGIN, stage->begun++);
    }
    pthread_mutex_unlock(&workers->lock);
    return task;
}

static void publish(struct stage *stage, struct task *task)
{
    struct workers *workers = stage->workers;
    pthread_mutex_lock(&workers->lock);
    workers->events_owed--;
    trace_record(stage, WORKER_END, stage->ended++);
    queue_put(&stage->results, task);
    pthread_cond_signal(&stage->finished);
    pthread_mutex_unlock(&workers->lock);
}

static void *stage_main(void *argument)
{
    struct stage *stage = argument;
    thread_set_name(stage->index);
    thread_step_back();
    for (struct task *task; (task = next_task(stage));) {
        task_run(task, stage->index);
        publish(stage, task);
    }
    return NULL;
}

/* ---- handles ---- */

static void workers_destroy(struct object *self)
{
    struct workers *workers = (struct workers *)self;
    for (int i = 0; i < workers->stage_count; i++) {
        struct stage *stage = &workers->stages[i];
        for (struct task *task; (task = queue_take(&stage->tasks));)
            task_free(task);
        for (struct task *task; (task = queue_take(&stage->results));)
            task_free(task);
        pthread_cond_destroy(&stage->submitted);
        pthread_cond_destroy(&stage->finished);
    }
    pthread_mutex_destroy(&workers->lock);
    free(workers->events);
    free(workers);
}

/* workers_hold - workers that are alive, kept so until object_release. errors: RuntimeError */
static struct workers *workers_hold(struct workers *wanted, const char *caller)
{
    pthread_mutex_lock(&live.lock);
    struct workers *workers = live.first;
    while (workers && workers != wanted)
        workers = workers->next;
    if (workers)
        object_retain(&workers->object);
    pthread_mutex_unlock(&live.lock);
    if (!workers)
        (void)raise_error(RuntimeError, "%s: these workers were closed, or never made", caller);
    return workers;
}

static void enlist(struct workers *workers)
{
    pthread_mutex_lock(&live.lock);
    workers->next = live.first;
    live.first = workers;
    pthread_mutex_unlock(&live.lock);
}

/* strike_off - out of the list of the live. returns: false if it was not in it */
static bool strike_off(struct workers *workers)
{
    pthread_mutex_lock(&live.lock);
    struct workers **at = &live.first;
    while (*at && *at != workers)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found)
        *at = workers->next;
    pthread_mutex_unlock(&live.lock);
    return found;
}

static struct stage *stage_at(struct workers *workers, int stage, const char *caller)
{
    if (stage < 0 || stage >= workers->stage_count)
        return raise_null(ValueError, "%s: there is no stage %d: the stages are 0 to %d", caller,
                          stage, workers->stage_count - 1);
    return &workers->stages[stage];
}

/* ---- submit ---- */

static int stage_submit(struct stage *stage, struct task *task)
{
    struct workers *workers = stage->workers;
    pthread_mutex_lock(&workers->lock);
    int status = workers->closed
                     ? raise_error(RuntimeError, "workers_submit: these workers are being closed")
                     : trace_reserve(workers, 3);
    if (status == 0) {
        trace_record(stage, WORKER_SUBMIT, stage->submits++);
        workers->events_owed += 2;
        queue_put(&stage->tasks, task);
        pthread_cond_signal(&stage->submitted);
    }
    pthread_mutex_unlock(&workers->lock);
    if (status < 0)
        task_free(task);
    return status;
}

int workers_submit_copy(struct workers *handle, int index, task_fn *function,
                        const void *environment, size_t bytes)
{
    if (error_occurred())
        return -1;
    if (!function)
        return raise_error(ValueError, "workers_submit: the function is NULL");
    struct workers *workers = workers_hold(handle, "workers_submit");
    if (!workers)
        return -1;
    struct stage *stage = stage_at(workers, index, "workers_submit");
    struct task *task = stage ? task_new(function, environment, bytes) : NULL;
    int status = task ? stage_submit(stage, task) : -1;
    object_release(&workers->object);
    return status;
}

/* ---- receive ---- */

/* describe - what a receive from this stage is waiting for, and the state of that */
static void describe(const struct stage *stage, const char *state, char *text, size_t bytes)
{
    int64_t task = stage->delivered;
    if (task >= stage->submits)
        snprintf(text, bytes, "%lld tasks were submitted to it and all were received",
                 (long long)stage->submits);
    else
        snprintf(text, bytes, "its task #%lld %s", (long long)task, state);
}

/* wait_for_result - until the stage has one. errors: -1, with TimeoutError or RuntimeError */
static int wait_for_result(struct stage *stage)
{
    struct workers *workers = stage->workers;
    double deadline = seconds_now() + workers->timeout_s;
    int late = 0;
    while (!stage->results.first && !workers->closed && !late)
        late = condition_wait(&stage->finished, &workers->lock, deadline) != 0;
    if (stage->results.first)
        return 0;
    if (workers->closed)
        return raise_error(RuntimeError, "workers_receive: the workers were closed meanwhile");
    char text[120];
    describe(stage, stage->delivered < stage->begun ? "is still running" : "has not begun", text,
             sizeof text);
    return raise_error(TimeoutError, "no result from stage %d within %g s: %s", stage->index,
                       workers->timeout_s, text);
}

/* The text of the announcement stays, and so must not say whether the task has begun. */
static int announce_and_wait(struct stage *stage)
{
    char text[120];
    describe(stage, "is not finished", text, sizeof text);
    activity_begin("workers_receive from stage %d: %s", stage->index, text);
    int status = wait_for_result(stage);
    activity_end();
    return status;
}

/* stage_receive - the next finished task, or NULL with an error */
static struct task *stage_receive(struct stage *stage)
{
    struct workers *workers = stage->workers;
    pthread_mutex_lock(&workers->lock);
    int status = trace_reserve(workers, 1);
    if (status == 0)
        trace_record(stage, WORKER_RECEIVE, stage->receives++);
    /* A submit that failed left its error: do not wait for a result that cannot come. */
    if (error_occurred() && stage->delivered == stage->submits)
        status = -1;
    if (status == 0 && !stage->results.first)
        status = announce_and_wait(stage);
    struct task *task = status == 0 ? queue_take(&stage->results) : NULL;
    if (task)
        stage->delivered++;
    pthread_mutex_unlock(&workers->lock);
    return task;
}

struct tensor *workers_receive(struct workers *handle, int index)
{
    struct workers *workers = workers_hold(handle, "workers_receive");
    if (!workers)
        return NULL;
    struct stage *stage = stage_at(workers, index, "workers_receive");
    struct task *task = stage ? stage_receive(stage) : NULL;
    object_release(&workers->object);
    return task ? task_unpack(task) : NULL;
}

/* ---- making and closing ---- */

static void stage_init(struct workers *workers, int index)
{
    struct stage *stage = &workers->stages[index];
    stage->workers = workers;
    stage->index = index;
    condition_init(&stage->submitted);
    condition_init(&stage->finished);
    queue_init(&stage->tasks);
    queue_init(&stage->results);
}

/* stop - end and join the first `threads` stage threads */
static void stop(struct workers *workers, int threads)
{
    pthread_mutex_lock(&workers->lock);
    workers->closed = true;
    for (int i = 0; i < workers->stage_count; i++) {
        pthread_cond_broadcast(&workers->stages[i].submitted);
        pthread_cond_broadcast(&workers->stages[i].finished);
    }
    pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < threads; i++)
        pthread_join(workers->stages[i].thread, NULL);
}

static int start(struct workers *workers)
{
    for (int i = 0; i < workers->stage_count; i++) {
        struct stage *stage = &workers->stages[i];
        int fault = pthread_create(&stage->thread, NULL, stage_main, stage);
        if (fault) {
            stop(workers, i);
            return raise_error(OSError, "cannot start the thread of stage %d: %s", i,
                               strerror(fault));
        }
    }
    return 0;
}

struct workers *workers_new(int stages)
{
    if (stages < 1)
        return raise_null(ValueError, "workers_new: at least one stage is needed, got %d", stages);
    struct workers *workers = calloc(1, sizeof *workers + (size_t)stages * sizeof(struct stage));
    if (!workers)
        return raise_null(MemoryError, "out of memory for %d stages", stages);
    object_init(&workers->object, workers_destroy);
    pthread_mutex_init(&workers->lock, NULL);
    workers->timeout_s = wait_limit();
    workers->stage_count = stages;
    for (int i = 0; i < stages; i++)
        stage_init(workers, i);
    if (start(workers) < 0) {
        object_release(&workers->object);
        return NULL;
    }
    enlist(workers);
    return workers;
}

static bool called_from_a_stage(struct workers *workers)
{
    bool found = false;
    for (int i = 0; i < workers->stage_count; i++)
        found |= pthread_equal(workers->stages[i].thread, pthread_self()) != 0;
    return found;
}

void workers_close(struct workers *workers)
{
    if (!workers || !strike_off(workers))
        return;
    if (called_from_a_stage(workers)) {
        enlist(workers);
        (void)raise_error(RuntimeError,
                          "workers_close: a task cannot close the workers that run it");
        return;
    }
    stop(workers, workers->stage_count);
    object_release(&workers->object);
}

/* ---- setting and looking ---- */

void workers_set_timeout(struct workers *handle, double seconds)
{
    static const double longest = 1e9; /* a time_t can still hold the deadline */
    struct workers *workers = workers_hold(handle, "workers_set_timeout");
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->timeout_s = seconds < longest ? seconds : longest;
    pthread_mutex_unlock(&workers->lock);
    object_release(&workers->object);
}

int workers_thread(struct workers *handle, int index, pthread_t *thread)
{
    struct workers *workers = workers_hold(handle, "workers_thread");
    if (!workers)
        return -1;
    const struct stage *stage = stage_at(workers, index, "workers_thread");
    if (stage)
        *thread = stage->thread;
    object_release(&workers->object);
    return stage ? 0 : -1;
}

struct worker_trace *workers_trace(struct workers *handle)
{
    struct workers *workers = workers_hold(handle, "workers_trace");
    if (!workers)
        return NULL;
    pthread_mutex_lock(&workers->lock);
    struct worker_trace *trace = trace_copy(workers);
    pthread_mutex_unlock(&workers->lock);
    object_release(&workers->object);
    return trace;
}

void workers_trace_clear(struct workers *handle)
{
    struct workers *workers = workers_hold(handle, "workers_trace_clear");
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->event_count = 0;
    pthread_mutex_unlock(&workers->lock);
    object_release(&workers->object);
}

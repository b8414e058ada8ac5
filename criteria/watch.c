#include "criteria/watch.h"

#include "runtime/autograd.h"
#include "runtime/error.h"

static int worker_of_this_thread(const struct watch *watch)
{
    pthread_t thread;
    for (int stage = 0; stage < watch->stage_count; stage++)
        if (workers_thread(watch->workers, stage, &thread) == 0 &&
            pthread_equal(thread, pthread_self()))
            return stage;
    return -1;
}

/* The stage's task that is running, counted since the trace was cleared; -1: none is. */
static int64_t running_task(const struct watch *watch, int stage)
{
    SCOPE;
    struct worker_trace *trace = workers_trace(watch->workers);
    int64_t begun = 0;
    bool running = false;
    for (int i = 0; trace && i < trace->n; i++) {
        if (trace->at[i].stage != stage)
            continue;
        if (trace->at[i].action == WORKER_BEGIN) {
            begun++;
            running = true;
        } else if (trace->at[i].action == WORKER_END) {
            running = false;
        }
    }
    return running ? begun - 1 : -1;
}

/* Whoever calls a module has none of the errors of looking: its workers may have been closed. */
static struct watch_call look(const struct watch *watch, struct tensor *x)
{
    struct error *pending = error_take();
    int thread = worker_of_this_thread(watch);
    struct watch_call call = {
        .thread = thread,
        .task = thread < 0 ? -1 : running_task(watch, thread),
        .rows = tensor_size(x, 0),
        .grad = grad_enabled(),
    };
    error_clear();
    error_raise(pending);
    return call;
}

static struct tensor *watch_forward(struct module *self, struct tensor *x)
{
    struct watch *watch = *(struct watch **)module_environment(self);
    int index = atomic_fetch_add(&watch->calls, 1);
    if (index < WATCH_CALLS_MAX)
        watch->call[index] = look(watch, x);
    if (index == watch->fail_at) {
        error_set(watch->error, __FILE__, __LINE__, "%s", watch->message);
        return NULL;
    }
    return module_forward(module_child(self, "inner"), x);
}

static const struct module_class Watched = {"Watched", watch_forward};

struct module *watch_new(struct module *inner, struct watch *watch)
{
    struct module *module = module_new_with(&Watched, &watch, sizeof(struct watch *));
    return module_add_child(module, "inner", inner) < 0 ? NULL : module;
}

void watch_clear(struct watch *watch)
{
    atomic_store(&watch->calls, 0);
}

#include "criteria/watch.h"

#include "runtime/autograd.h"

static int worker_of_this_thread(const struct watch *watch)
{
    for (int stage = 0; stage < watch->stage_count; stage++)
        if (pthread_equal(workers_thread(watch->workers, stage), pthread_self()))
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
    for (int i = 0; i < trace->n; i++) {
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

static struct tensor *watch_forward(struct module *self, struct tensor *x)
{
    struct watch *watch = *(struct watch **)module_environment(self);
    int index = atomic_fetch_add(&watch->calls, 1);
    if (index < WATCH_CALLS_MAX) {
        int thread = worker_of_this_thread(watch);
        watch->call[index] = (struct watch_call){
            .thread = thread,
            .task = thread < 0 ? -1 : running_task(watch, thread),
            .rows = tensor_size(x, 0),
            .grad = grad_enabled(),
        };
    }
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

#ifndef CRITERIA_WATCH_H
#define CRITERIA_WATCH_H
/* watch.h - a module around a pipeline stage that notes who calls it, and can fail on purpose. */
#include <stdatomic.h>

#include "criteria/criterion.h"
#include "runtime/workers.h"

enum { WATCH_CALLS_MAX = 64 };

/* What one stage saw since it was last cleared. thread: the stage whose worker called, -1 for any
 * other thread; task: which of that worker's tasks was running; rows: of the input; grad: the grad
 * mode. */
struct watch {
    struct workers *workers;
    int stage_count;
    int fail_at;                    /* the call, from 0, that fails; -1: none */
    const struct error_type *error; /* how it fails */
    const char *message;
    atomic_int calls;
    struct watch_call {
        int thread;
        int64_t task, rows;
        bool grad;
    } call[WATCH_CALLS_MAX];
};

/* watch_new - `inner`, watched; its parameters stay its own, under "inner.". NULL passes through.
 * owns: borrowed from the scope. `watch` must outlive the module. */
struct module *watch_new(struct module *inner, struct watch *watch);

/* watch_clear - forget the calls so far */
void watch_clear(struct watch *watch);
#endif

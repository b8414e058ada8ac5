#ifndef TESTS_WORKERS_H
#define TESTS_WORKERS_H
/* workers.h - tasks for stage workers, and what shows when they ran and what became of theirs. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/object.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

/* A gate that one thread opens for another: order by cause, not by time. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
};

static inline void gate_init(struct gate *gate)
{
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, NULL);
    gate->is_open = false;
}

static inline void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

static inline void gate_pass(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static inline struct tensor *number(double value)
{
    return tensor_full(0, NULL, value, FLOAT32, CPU);
}

/* An object that counts its destruction. */
struct counted {
    struct object object;
    atomic_int *destroyed;
};

static inline void counted_destroy(struct object *self)
{
    struct counted *counted = (struct counted *)self;
    atomic_fetch_add(counted->destroyed, 1);
    free(counted);
}

static inline struct counted *counted_new(atomic_int *destroyed)
{
    struct counted *counted = malloc(sizeof *counted);
    object_init(&counted->object, counted_destroy);
    counted->destroyed = destroyed;
    return scope_own(&counted->object);
}

struct value {
    double value;
};

static inline struct tensor *give(void *environment)
{
    struct value *job = environment;
    return number(job->value);
}

struct gated {
    struct gate *begun, *gate;
    struct counted *counted;
    atomic_int *seen;
};

static inline struct tensor *wait_then_look(void *environment)
{
    struct gated *job = environment;
    gate_open(job->begun);
    gate_pass(job->gate);
    if (job->counted && job->seen)
        atomic_store(job->seen, atomic_load(job->counted->destroyed));
    return number(7);
}
#endif

#ifndef RUNTIME_DIST_INTERNAL_H
#define RUNTIME_DIST_INTERNAL_H
/* dist_internal.h - what lies between the entry points of dist.h and a backend.
 *
 *     dist.c       checks the arguments and makes a struct call of them
 *     dist_work.c  runs one call of a group at a time, in order, now or in the group's own thread
 *     a backend    carries a call out over its connections
 *
 * A call that fails breaks its group: the backend says why with group_fail, and from then on every
 * call gives that error. */
#include <pthread.h>
#include <stdbool.h>

#include "runtime/dist.h"
#include "runtime/error.h"
#include "runtime/object.h"

enum call_kind {
    CALL_ALL_REDUCE,
    CALL_BROADCAST,
    CALL_ALL_GATHER,
    CALL_REDUCE_SCATTER,
    CALL_BARRIER,
    CALL_SEND,
    CALL_RECV,
};
enum { CALL_KINDS = CALL_RECV + 1 };

/* One collective or message, as this rank called it. */
struct call {
    enum call_kind kind;
    enum dtype dtype;
    enum dist_op op;
    int peer;      /* the root of a broadcast, the other side of a message, else 0 */
    int64_t count; /* elements; of one rank's share for all_gather and reduce_scatter */
    const void *input;
    void *output;          /* may be the input */
    struct tensor *target; /* the tensor that output belongs to; NULL for none */
};

struct backend {
    const char *name;
    bool has_average; /* DIST_AVG */
    /* run - carry out a call; 0, or -1 after group_fail. Never entered by two threads at once. */
    int (*run)(struct group *group, const struct call *call);
    /* close - let the connections go; called once, after the last run */
    void (*close)(struct group *group);
};

enum { FAILURE_BYTES = 1000 };

struct group {
    struct object object; /* the caller of group_connect holds one reference, every work another */
    const struct backend *backend;
    void *connections; /* the backend's */
    int rank, world_size;
    double timeout_s;

    pthread_mutex_t mutex; /* of all that follows */
    pthread_cond_t changed;
    bool busy; /* somebody is in backend->run */
    bool closing;
    struct work *first, *last; /* started with _async and not yet run */
    bool has_thread;
    pthread_t thread; /* runs those */
    struct group_counts counts;

    const struct error_type *failure; /* NULL: the group works. Set by whoever is busy. */
    char failure_text[FAILURE_BYTES];
};

/* group_new - a group without connections. owns: the caller. errors: MemoryError */
struct group *group_new(const struct backend *backend, int rank, int world_size, double timeout_s);

/* group_fail - break the group; the first failure stays. returns: -1. Raises nothing by itself. */
int group_fail(struct group *group, const struct error_type *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* group_run - carry out a call after those started before it, in this thread
 * errors: -1, with the group's failure */
int group_run(struct group *group, const struct call *call);

/* group_start - queue a call; its target is retained until nobody needs the work any more
 * owns: borrowed from the scope. errors: NULL, with MemoryError, OSError, the group's failure */
struct work *group_start(struct group *group, const struct call *call);

/* group_drain - run what was started and end the group's thread */
void group_drain(struct group *group);

#endif

#ifndef RUNTIME_DIST_INTERNAL_H
#define RUNTIME_DIST_INTERNAL_H
/* dist_internal.h - what lies between the entry points of dist.h and the connections.
 *
 *     dist.c         checks the arguments and makes a struct call of them
 *     dist_work.c    runs one call of a group at a time, in order, now or in the group's own thread
 *     dist_device.c  carries out a call on the memory of devices
 *     dist_tcp.h     carries out any other, over TCP
 *
 * A call that fails breaks its group: whoever carries it out says why with group_fail, and from
 * then on every call gives that error. */
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

/* is_message - between two ranks, and no collective */
static inline bool is_message(enum call_kind kind)
{
    return kind == CALL_SEND || kind == CALL_RECV;
}

/* One collective or message, as this rank called it. */
struct call {
    enum call_kind kind;
    enum dtype dtype;
    enum dist_op op;
    int peer;      /* the root of a broadcast, the other side of a message, else 0 */
    int64_t count; /* elements; of one rank's share for all_gather and reduce_scatter */
    struct device device;
    const void *input;
    void *output;                /* may be the input */
    const struct tensor *source; /* the tensor that input belongs to; NULL for none */
    struct tensor *target;       /* the same of output */
    void *fence;                 /* of a device that is not the CPU; see plugin.h */
};

enum { FAILURE_BYTES = 1000 };

struct group {
    struct object object; /* the caller of group_connect holds one reference, every work another */
    struct mesh *mesh;    /* its connections; see dist_tcp.h */
    struct link {
        enum route { ROUTE_UNKNOWN, ROUTE_DIRECT, ROUTE_BY_HOST } route;
        int device;
        void *connection;
    } link; /* see dist_device.c; of whoever is busy */
    int rank, world_size;
    double timeout_s;

    pthread_mutex_t mutex; /* of all that follows */
    pthread_cond_t changed;
    bool busy; /* somebody carries out a call */
    bool closing;
    struct work *first, *last; /* started with _async and not yet run */
    bool has_thread;
    pthread_t thread; /* runs those */
    struct group_counts counts;

    const struct error_type *failure; /* NULL: the group works. Set by whoever is busy. */
    char failure_text[FAILURE_BYTES];
};

/* group_new - a group without connections. owns: the caller. errors: MemoryError */
struct group *group_new(int rank, int world_size, double timeout_s);

/* group_fail - break the group; the first failure stays. returns: -1. Raises nothing by itself. */
int group_fail(struct group *group, const struct error_type *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* group_run - carry out a call after those started before it, in this thread
 * errors: -1, with the group's failure */
int group_run(struct group *group, const struct call *call);

/* group_start - queue a call; its target is retained until nobody needs the work any more
 * owns: borrowed from the scope. errors: NULL, with MemoryError, OSError, the group's failure */
struct work *group_start(struct group *group, const struct call *call);

/* ---- tensors of other devices than the CPU: dist_device.c ---- */

/* device_fence - of what was asked of the call's device so far; nothing for the CPU. errors: -1
 * device_join - what is asked of it from now on waits for the call's end; once. errors: -1
 * device_run - carry out a call. errors: -1, the group is broken
 * device_close - at the end of a group */
int device_fence(struct call *call);
int device_join(struct call *call);
int device_run(struct group *group, const struct call *call);
void device_close(struct group *group);

/* ---- for who waits for a device, in any thread ---- */

/* group_listen - whether the peers are still there
 * returns: NO_PEER; the peer that has left; GROUP_BROKEN */
enum { NO_PEER = -1, GROUP_BROKEN = -2 };
int group_listen(struct group *group);

/* group_give_up - break the group and tell every peer, unless it is broken already */
void group_give_up(struct group *group, const struct error_type *type, const char *text);

/* group_drain - run what was started and end the group's thread */
void group_drain(struct group *group);

#endif

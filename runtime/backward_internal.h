#ifndef RUNTIME_BACKWARD_INTERNAL_H
#define RUNTIME_BACKWARD_INTERNAL_H
/* backward_internal.h - the parts of a backward; the theory is at the top of backward.c.
 *
 *     backward_plan.c   the walk through the graph: who takes part, in which order sums are made
 *     backward_sum.c    contributions to a gradient, added up in that order
 *     backward_lanes.c  which node runs next, and in which thread
 *     backward.c        running a node; tensor_backward */
#include "runtime/autograd_internal.h"
#include "runtime/tensor_internal.h"

/* Threads that built a graph beyond this many share lanes. */
enum { LANES_MAX = 32 };

/* A node or leaf that takes part. */
struct target {
    struct node *node;       /* retained, until it has run */
    struct tensor *leaf;     /* retained */
    struct tensor *gradient; /* the sum so far */
    int to_come;             /* contributions */
    struct waiting *waiting; /* those that came before their turn; next in turn first */
    int last_source;         /* while planning: who sends the latest contribution numbered */
    int unsteady; /* contributions of a turn below this find a sum that depends on timing */
    int place;    /* in the order of the plan: higher ones run first */
    int lane;
    int next_late; /* in the crew's list; NOBODY at its end */
};

struct visit {
    int target, next_edge;
};

/* A node that may run. */
struct ready {
    unsigned long long sequence;
    int place, target;
};

/* The nodes that one thread made: they run one at a time. */
struct lane {
    unsigned id;
    unsigned long long first; /* the lowest of their sequence numbers */
    int64_t work;             /* elements that its nodes' gradients have */
    int nodes, ready_count;
    struct ready *ready; /* a heap */
    bool running;
};

/* On the stack, enough for a small graph. */
enum { ROOM = 64 };
struct room {
    struct target target[ROOM];
    struct visit stack[ROOM];
    struct ready ready[ROOM];
    int leaf_slot[2 * ROOM];
    struct lane lane[LANES_MAX];
};

struct plan {
    unsigned long long id;
    struct room *room;
    bool on_device; /* some of it is not in the CPU's memory */
    int targets, target_capacity;
    struct target *target;
    int nodes;
    int depth;
    struct visit *stack;
    int leaf_slots, leaves; /* open addressing: leaf -> target + 1 */
    int *leaf_slot;
    int lane_count;
    struct lane *lane;
    struct ready *ready;
    struct crew *crew; /* the threads, if there may be several */
};

/* ---- backward_plan.c ---- */

/* plan_make - walk from `root`, claim every node on the way, and open the lanes
 * errors: -1, with MemoryError, RuntimeError; no node is then claimed. plan_free in any case */
int plan_make(struct plan *plan, struct edge *root);
void plan_free(struct plan *plan);

/* ---- backward_sum.c ---- */

/* target_receive - a contribution has come: edge->sent, or nothing. It is taken from the edge, and
 * added up once all before it are.
 * returns: 1 if it was the target's last one, else 0. errors: -1 */
int target_receive(struct target *target, struct edge *edge);
void target_free(struct target *target);

/* ---- backward_lanes.c ---- */

/* lanes_open - after the walk: decide whether there will be threads
 * errors: -1, with MemoryError */
int lanes_open(struct plan *plan);
void lanes_close(struct plan *plan);

/* lanes_push - a node has all it needs to run */
void lanes_push(struct plan *plan, int target);

/* lanes_give_away - let a thread that has nothing to do run a node's late rule. returns: whether
 * there is one */
bool lanes_give_away(struct plan *plan, int target);

/* lanes_run - run nodes until none is left. errors: -1, with the first error in any thread */
int lanes_run(struct plan *plan);

/* lanes_lock_target, lanes_lock_hooks - where there are threads: one of them at a time adds to a
 * target, one calls a hook
 * returns: what lanes_unlock is to be given; NULL where there is one thread */
pthread_mutex_t *lanes_lock_target(struct plan *plan, int target);
pthread_mutex_t *lanes_lock_hooks(struct plan *plan);
void lanes_unlock(pthread_mutex_t *lock);

/* ---- backward.c ---- */

/* plan_run_node - call its rule, hand on what it sent; the late rule, too, unless another thread
 * takes it
 * returns: 0; 1 if plan_run_late is left to do. errors: -1 */
int plan_run_node(struct plan *plan, int target);
int plan_run_late(struct plan *plan, int target);
#endif

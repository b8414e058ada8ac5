#ifndef RUNTIME_DIST_H
#define RUNTIME_DIST_H
/* dist.h - process groups and collectives, in the manner of torch.distributed.
 *
 * Every rank calls the same collectives in the same order. A peer that died, left, or called
 * something else (another collective, element count, dtype, operation or root) is a DistError on
 * every rank that names both sides, within a second; a peer that is merely late is waited for until
 * the group's time-out, then TimeoutError. After an error the group is unusable: every later call
 * gives the same error. Tensors must be contiguous. */
#include <stdint.h>

#include "runtime/tensor.h"

enum dist_op { DIST_SUM, DIST_MIN, DIST_MAX, DIST_AVG };

struct group; /* a process group: one rank's connections to all others */
struct work;  /* a collective under way */

/* ---- the default group: what student code uses ---- */

/* dist_rank, dist_world_size - of the default group; 0 and 1 without one */
int dist_rank(void);
int dist_world_size(void);

/* dist_all_reduce - replace x, in place, by the sum (or min, max) over all ranks
 * errors: -1; NULL passes through; ValueError for DIST_AVG of a CPU tensor (TCP has none, as gloo),
 *         and for a tensor that is not contiguous; RuntimeError without a default group; DistError,
 *         TimeoutError
 * source: torch.distributed.all_reduce
 *
 * On the CPU values are reduced in rank order, FLOAT16 in FLOAT32 and rounded once: the result is
 * the same to the bit on every rank and in every run. */
int dist_all_reduce(struct tensor *x, enum dist_op op);

/* dist_all_reduce_async - start it and return at once; x must not be touched until work_wait
 * returned. Every handle must be waited for; collectives run in the order they were started.
 * owns: borrowed from the scope. errors: NULL, as above. source: all_reduce(async_op=True) */
struct work *dist_all_reduce_async(struct tensor *x, enum dist_op op);

/* work_wait - wait until it is done. errors: -1; NULL passes through; those of the collective */
int work_wait(struct work *work);

/* dist_broadcast - x of rank `root` to every rank
 * dist_all_gather - output (world_size * n elements) = the inputs (n each) in rank order
 * dist_reduce_scatter - input (world_size * n) reduced; rank r gets the r-th n elements
 * dist_barrier - wait until every rank is here
 * dist_send, dist_recv - point to point; sizes and dtypes must agree
 * errors: -1, as dist_all_reduce */
int dist_broadcast(struct tensor *x, int root);
int dist_all_gather(struct tensor *output, const struct tensor *input);
int dist_reduce_scatter(struct tensor *output, const struct tensor *input, enum dist_op op);
int dist_barrier(void);
int dist_send(const struct tensor *x, int to);
int dist_recv(struct tensor *x, int from);

/* ---- making groups ---- */

enum { GROUP_MAX_RANKS = 64 };

struct group_options {
    int rank, world_size;
    double timeout_s; /* for connecting and for every wait; 0: wait_limit(), 30 s */

    /* How ranks find each other, one of two ways.
     *
     * listener: this rank's own listening TCP socket (bound to port 0 by whoever starts the ranks;
     * taken over and closed). addresses: "host:port" of every rank's, borrowed. token: any text
     * that only these ranks know (NULL: one is made of the addresses, which keeps out strays, not
     * attackers).
     *
     * file: a path that all ranks share. Rank 0 listens on any free port of interface_address
     * ("127.0.0.1" when NULL) and publishes it there with a random token, readable to its owner
     * only, whole (written aside, then renamed). The others listen on interface_address too. */
    int listener;
    const char *const *addresses;
    const char *token;
    const char *file;
    const char *interface_address;
};

/* group_connect - connect this rank to all others
 * owns:   the caller, until group_close. world_size 1 needs neither listener nor file.
 * errors: NULL, with ValueError, OSError, MemoryError, DistError, or TimeoutError naming the ranks
 *         that did not come */
struct group *group_connect(const struct group_options *options);

/* group_close - leave. Peers still waiting for this rank get a DistError. NULL is allowed. */
void group_close(struct group *group);

/* dist_set_default, dist_default - the group that the dist_ functions use; NULL for none */
void dist_set_default(struct group *group);
struct group *dist_default(void);

/* The same collectives on a group. */
int group_rank(const struct group *group);
int group_world_size(const struct group *group);
int group_all_reduce(struct group *group, struct tensor *x, enum dist_op op);
struct work *group_all_reduce_async(struct group *group, struct tensor *x, enum dist_op op);
int group_broadcast(struct group *group, struct tensor *x, int root);
int group_all_gather(struct group *group, struct tensor *output, const struct tensor *input);
int group_reduce_scatter(struct group *group, struct tensor *output, const struct tensor *input,
                         enum dist_op op);
int group_barrier(struct group *group);
int group_send(struct group *group, const struct tensor *x, int to);
int group_recv(struct group *group, struct tensor *x, int from);

/* group_counts - what this rank has called so far, and how many handles nobody has waited for */
struct group_counts {
    int64_t all_reduce, broadcast, all_gather, reduce_scatter, barrier, send, recv;
    int64_t unawaited;
};
struct group_counts group_counts(const struct group *group);
#endif

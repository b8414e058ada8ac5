#ifndef ASSIGNMENT_DATA_PARALLEL_H
#define ASSIGNMENT_DATA_PARALLEL_H
/* Problem 1: data parallelism. See docs/handout.md. */
#include <math.h>
#include <stdint.h>

#include "runtime/autograd.h"
#include "runtime/dist.h"
#include "runtime/error.h"
#include "runtime/nn.h"
#include "runtime/ops.h"
#include "runtime/optim.h"
#include "runtime/rng.h"
#include "runtime/scope.h"

/* One rank's share of the examples. */
struct partition {
    int64_t n;
    int64_t *indices;
};

/* All shares: at[r] is rank r's. */
struct partitions {
    int n;
    struct partition *at;
};

#define PARTITION_SEED 1234 /* the seed to use where nothing speaks for another */

/* partitions_new - room for world_size shares, all of them empty
 * owns: borrowed from the scope. errors: NULL, with MemoryError */
static inline struct partitions *partitions_new(int world_size)
{
    struct partitions *partitions = scope_alloc(sizeof *partitions);
    struct partition *shares = scope_alloc((size_t)world_size * sizeof *shares);
    if (!partitions || !shares)
        return NULL;
    *partitions = (struct partitions){world_size, shares};
    return partitions;
}

/* indices_range - 0, 1, ..., size-1. owns: borrowed from the scope. errors: NULL, with MemoryError
 * source: list(range(size)) */
static inline int64_t *indices_range(int64_t size)
{
    int64_t *indices = scope_alloc(size <= INT64_MAX / 8 ? (size_t)size * 8 : SIZE_MAX);
    for (int64_t i = 0; indices && i < size; i++)
        indices[i] = i;
    return indices;
}

/* partition_indices - deal 0 .. size-1, shuffled, to world_size ranks
 * returns: world_size shares in rank order; rank r has size / world_size indices, plus one if
 *          r < size % world_size. The same seed gives the same partitions.
 * owns:    borrowed from the scope
 * errors:  NULL, with ValueError if size < 0 or world_size < 1 */
struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed);

/* average_gradients - replace every parameter's gradient, in place, by its mean over all ranks
 * errors: -1; a failed collective's error. A parameter without gradient keeps none. */
int average_gradients(struct module *model);

/* train_step - one data-parallel training step on this rank's rows
 * returns: the local loss
 * errors:  NAN, with the error of whatever failed */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn);
#endif

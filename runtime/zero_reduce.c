#include <stdlib.h>

#include "runtime/autograd.h"
#include "runtime/autograd_internal.h"
#include "runtime/error.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/zero_internal.h"

/* What a leaf's hook is given. */
struct reducer_slot {
    struct reducer *reducer;
    struct slot *slot;
};

/* ---- in the reducer's thread ---- */

struct job {
    const struct partition *partition;
    struct bucket *bucket;
    struct group *group;
};

/* reduced - the owned part of the sum over the ranks, in the dtype that travels */
static struct tensor *reduced(const struct job *job)
{
    struct tensor *wire = tensor_cast(job->bucket->full, job->partition->wire_dtype);
    if (!wire)
        return NULL;
    if (job->partition->stage == 0)
        return group_all_reduce(job->group, wire, DIST_SUM) < 0 ? NULL : wire;
    struct tensor *part =
        tensor_empty(SHAPE(job->bucket->part), tensor_dtype(wire), tensor_device(wire));
    if (!part || group_reduce_scatter(job->group, part, wire, DIST_SUM) < 0)
        return NULL;
    return part;
}

/* reduce - add a bucket's gradients up over the ranks. At stage 2 the sum is added to what the
 * owner has of earlier microbatches, and the full gradient ends here. */
static struct tensor *reduce(void *environment)
{
    struct job *job = environment;
    struct bucket *bucket = job->bucket;
    struct tensor *sum = reduced(job);
    if (job->partition->stage != 2)
        return sum ? tensor_copy_(bucket->gradient, sum) : NULL;
    tensor_release(bucket->full);
    bucket->full = NULL;
    return tensor_add_(bucket->gradient, tensor_cast(sum, job->partition->dtype), 1);
}

/* ---- in the thread of backward ---- */

/* launch - hand over the buckets whose turn it is: the complete ones, or all that are left */
static int launch(struct reducer *reducer, bool all)
{
    struct partition *partition = reducer->partition;
    while (reducer->launched < partition->bucket_count) {
        struct bucket *bucket = &partition->buckets[reducer->launched];
        if (!all && bucket->ready_count < bucket->slot_count)
            break;
        /* Without any gradient it takes part with zeros. */
        if (bucket_open(partition, bucket) < 0 ||
            workers_submit(reducer->thread, 0, reduce,
                           (struct job){partition, bucket, reducer->group}) < 0)
            return -1;
        reducer->launched++;
    }
    return 0;
}

static int collect(struct reducer *reducer, struct slot *slot)
{
    struct bucket *bucket = slot->bucket;
    if (bucket_open(reducer->partition, bucket) < 0 ||
        !tensor_add_(bucket_view(slot, bucket->full), tensor_grad(slot->parameter), 1) ||
        tensor_set_grad(slot->parameter, NULL) < 0)
        return -1;
    reducer->collected++;
    bucket->ready_count += !slot->ready;
    slot->ready = true;
    return 0;
}

static void take_gradient(void *context, struct tensor *leaf)
{
    (void)leaf;
    struct reducer_slot *hook = context;
    struct reducer *reducer = hook->reducer;
    if (!reducer->collecting) {
        reducer->stray = true;
        return;
    }
    SCOPE;
    NO_GRAD;
    if (collect(reducer, hook->slot) == 0 && reducer->reducing)
        launch(reducer, false); /* its error stays pending and ends the backward */
}

void reducer_begin(struct reducer *reducer, bool reducing)
{
    reducer->collecting = true;
    reducer->reducing = reducing;
    reducer->launched = 0;
    reducer->collected = 0;
    for (int i = 0; i < reducer->partition->slot_count; i++)
        reducer->partition->slots[i].ready = false;
    for (int i = 0; i < reducer->partition->bucket_count; i++)
        reducer->partition->buckets[i].ready_count = 0;
}

int reducer_end(struct reducer *reducer, int status)
{
    SCOPE;
    NO_GRAD;
    reducer->collecting = false;
    if (status == 0 && reducer->reducing)
        status = launch(reducer, true);
    for (int i = 0; i < reducer->launched; i++)
        if (!workers_receive(reducer->thread, 0))
            status = -1;
    return status;
}

/* ---- making ---- */

int reducer_init(struct reducer *reducer, struct partition *partition, struct group *group)
{
    static const double for_ever = INFINITY; /* the group's own time-out counts */
    *reducer = (struct reducer){.partition = partition, .group = group};
    reducer->hooks = calloc((size_t)partition->slot_count, sizeof *reducer->hooks);
    if (!reducer->hooks)
        return raise_error(MemoryError, "out of memory for %d hooks", partition->slot_count);
    reducer->thread = workers_new(1);
    if (!reducer->thread)
        return -1;
    workers_set_timeout(reducer->thread, for_ever);
    for (int i = 0; i < partition->slot_count; i++) {
        reducer->hooks[i] = (struct reducer_slot){reducer, &partition->slots[i]};
        if (tensor_on_grad_ready(partition->slots[i].parameter, take_gradient, &reducer->hooks[i]) <
            0)
            return -1;
    }
    return 0;
}

void reducer_free(struct reducer *reducer)
{
    workers_close(reducer->thread);
    for (int i = 0; reducer->hooks && i < reducer->partition->slot_count; i++)
        if (reducer->hooks[i].reducer)
            tensor_on_grad_ready(reducer->partition->slots[i].parameter, NULL, NULL);
    free(reducer->hooks);
}

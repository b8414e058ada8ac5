#ifndef RUNTIME_ZERO_INTERNAL_H
#define RUNTIME_ZERO_INTERNAL_H
/* zero_internal.h - the parts of the ZeRO engine.
 *
 *     zero_config.c     what the JSON object says, checked
 *     zero_scaler.c     the loss scale of FP16 training
 *     zero_partition.c  who owns which elements: buckets, their memory, packing and gathering
 *     zero_reduce.c     gradients on their way from the leaves to their owners
 *     zero.c            the engine: forward, backward, step */
#include <stdbool.h>

#include "runtime/workers.h"
#include "runtime/zero.h"

/* ---- configuration ---- */

struct fp16_config {
    bool enabled;
    bool consecutive_hysteresis;
    double loss_scale; /* 0: dynamic */
    double min_loss_scale;
    int initial_scale_power, loss_scale_window, hysteresis;
};

struct zero_config {
    int stage, accumulation;
    int64_t reduce_bucket_size; /* elements */
    double gradient_clipping;   /* 0: none */
    struct fp16_config fp16;
};

/* zero_config_read - check `json` for `world_size` ranks and take what matters here from it
 * errors: -1, with ValueError naming key, value and what would be right; NotImplementedError for
 *         what DeepSpeed has and this engine has not; NULL passes through */
int zero_config_read(struct zero_config *config, const json_t *json, int world_size);

/* ---- loss scaling ---- */

/* source: DeepSpeed's DynamicLossScaler. Without overflow for `window` steps: doubled. At an
 * overflow: halved, but not before `hysteresis` overflows since it was last refilled. */
struct loss_scaler {
    bool dynamic, consecutive_hysteresis;
    double scale, min_scale;
    int64_t step, last_overflow;
    int window, hysteresis, hysteresis_left;
};
void loss_scaler_init(struct loss_scaler *scaler, const struct fp16_config *config);

/* loss_scaler_update - after a step. errors: -1, with RuntimeError if the scale overflows at its
 * minimum */
int loss_scaler_update(struct loss_scaler *scaler, bool overflow);

/* ---- who owns what ---- */

/* A parameter's place in its bucket. */
struct slot {
    struct tensor *parameter;
    struct bucket *bucket;
    int64_t offset;
    bool ready; /* its gradient has come in this backward */
};

/* Parameters that are reduced and gathered together. All their elements stand in a row, padded with
 * zeros to world_size equal parts; rank r owns the r-th part (at stage 0 each rank owns all). */
struct bucket {
    struct slot *slots;
    int slot_count, ready_count;
    int64_t part;            /* elements that a rank owns at stages 1 and 2 */
    struct tensor *full;     /* this rank's gradients of all elements; at stage 2 until reduced */
    struct tensor *gradient; /* owned: reduced gradients; at stages 0 and 1 within `full` */
    struct tensor *master;   /* owned: the parameters' values in full precision */
};

struct partition {
    int stage, rank, world_size;
    enum dtype dtype;      /* of gradients and master weights */
    enum dtype wire_dtype; /* of what travels between the ranks */
    struct device device;
    int slot_count, bucket_count;
    struct slot *slots;
    struct bucket *buckets;
};

/* partition_init - plan for `parameters`, in the order in which gradients are expected to come, and
 * take the master weights from them. Retains the parameters.
 * errors: -1, with TypeError, ValueError; what was made is freed by partition_free */
int partition_init(struct partition *partition, const struct tensors *parameters,
                   const struct zero_config *config, struct group *group);
void partition_free(struct partition *partition);

/* bucket_open - see to it that bucket->full exists. errors: -1
 * bucket_view - the slot's elements of a bucket-sized tensor, in the parameter's shape */
int bucket_open(const struct partition *partition, struct bucket *bucket);
struct tensor *bucket_view(const struct slot *slot, struct tensor *full);

/* partition_gather - every parameter from its owner's master weights. errors: -1 */
int partition_gather(struct partition *partition, struct group *group);

/* partition_norm - of all gradients, over the ranks; not finite if any is not. errors: -1 */
int partition_norm(struct partition *partition, struct group *group, double *norm);

/* partition_update - master += factor * gradient. partition_clear - gradients = 0. errors: -1 */
int partition_update(struct partition *partition, double factor);
int partition_clear(struct partition *partition);

/* ---- from the leaves to the owners ---- */

/* Buckets are reduced in a thread of their own while backward goes on, always in the plan's order,
 * so that every rank makes the same calls whatever order its gradients come in. */
struct reducer {
    struct partition *partition;
    struct group *group;
    struct workers *thread;
    struct reducer_slot *hooks;
    bool collecting; /* in engine_backward */
    bool reducing;   /* and gradients go to their owners in it */
    bool stray;      /* a gradient came outside of engine_backward */
    int launched;    /* buckets handed to the thread in this backward */
    int collected;   /* gradients taken in this backward */
};

int reducer_init(struct reducer *reducer, struct partition *partition, struct group *group);
void reducer_free(struct reducer *reducer);

/* reducer_begin - collect from now on, and reduce if `reducing`. reducer_end - reduce what is left,
 * wait for all of it. status: of the backward in between. errors: -1 */
void reducer_begin(struct reducer *reducer, bool reducing);
int reducer_end(struct reducer *reducer, int status);
#endif

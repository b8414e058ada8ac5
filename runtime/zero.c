/* zero.c - the ZeRO engine.
 *
 * The parameters that require grad are laid out in buckets (zero_partition.c); each rank owns an
 * equal part of every bucket and keeps its master weights, at stage 2 also its gradients, in full
 * precision. While backward runs, hooks take each leaf's gradient into its bucket, and buckets that
 * are complete are summed into their owners' parts in another thread (zero_reduce.c): at stage 2
 * for every microbatch, at stages 0 and 1 for the last one of an accumulation window. A step
 * updates the owned master weights and gathers the parameters from their owners.
 *
 * Scaling the loss by loss_scale / (accumulation * world_size) makes those sums the averages.
 *
 * fp16: the CPU computes in FP32, so a parameter is an FP32 tensor that holds FP16 values;
 * gradients are rounded to FP16 when they leave the rank, and overflow there. source: DeepSpeed's
 * runtime/zero/stage_1_and_2.py, except that an update divides by the scale that its gradients were
 * computed with, also in the step that changes the scale. */
#include "runtime/zero.h"

#include <stdlib.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/object.h"
#include "runtime/scope.h"
#include "runtime/zero_internal.h"

struct engine {
    struct module *model;
    struct optimizer *optimizer;
    struct group *group;
    struct zero_config config;
    struct loss_scaler scaler;
    struct partition partition;
    struct reducer reducer;
    bool forward_done, backward_done;
    bool broken; /* a backward or step failed half-way: what is in the buckets means nothing */
    int64_t microbatches, steps, skipped_steps, optimizer_steps;
};

/* ---- use ---- */

struct tensor *engine_forward(struct engine *engine, struct tensor *inputs)
{
    if (!engine)
        return raise_null(ValueError, "engine_forward: the engine is NULL");
    struct tensor *output = module_forward(engine->model, inputs);
    engine->forward_done |= output != NULL;
    return output;
}

static bool at_boundary(const struct engine *engine)
{
    return (engine->microbatches + 1) % engine->config.accumulation == 0;
}

/* check_usable - what no call can go on with. errors: -1, with RuntimeError */
static int check_usable(const struct engine *engine, const char *caller)
{
    if (error_occurred())
        return -1;
    if (!engine)
        return raise_error(ValueError, "%s: the engine is NULL", caller);
    if (engine->broken)
        return raise_error(RuntimeError, "%s: an earlier call failed half-way", caller);
    if (engine->reducer.stray)
        return raise_error(RuntimeError,
                           "%s: a gradient was computed outside of the engine: call "
                           "engine_backward(engine, loss), not tensor_backward(loss)",
                           caller);
    if (optimizer_steps(engine->optimizer) != engine->optimizer_steps)
        return raise_error(RuntimeError,
                           "%s: the optimizer was stepped outside of the engine: engine_step "
                           "updates the parameters, and nothing else may",
                           caller);
    return 0;
}

static int check_backward(const struct engine *engine, const struct tensor *loss)
{
    if (check_usable(engine, "engine_backward") < 0)
        return -1;
    if (!loss)
        return raise_error(ValueError, "engine_backward: the loss is NULL");
    if (!engine->forward_done)
        return raise_error(RuntimeError,
                           "engine_backward: no engine_forward(engine, inputs) came before");
    if (engine->backward_done)
        return raise_error(RuntimeError, "engine_backward: called twice without engine_step, which "
                                         "follows every microbatch's backward");
    return 0;
}

int engine_backward(struct engine *engine, struct tensor *loss)
{
    if (check_backward(engine, loss) < 0)
        return -1;
    SCOPE;
    double ranks = engine->partition.world_size;
    double factor = engine->scaler.scale / (engine->config.accumulation * ranks);
    reducer_begin(&engine->reducer, engine->config.stage == 2 || at_boundary(engine));
    int status = tensor_backward(tensor_scale(loss, factor));
    status = reducer_end(&engine->reducer, status);
    engine->backward_done = status == 0;
    engine->broken = status < 0 && engine->reducer.collected + engine->reducer.launched > 0;
    return status;
}

/* clip - the factor that brings a gradient of this norm down to the limit */
static double clip(const struct engine *engine, double norm)
{
    double ratio = (norm + 1e-6) / engine->config.gradient_clipping;
    return engine->config.gradient_clipping > 0 && ratio > 1 ? 1 / ratio : 1;
}

/* update - one step of the optimizer with the averaged gradients, or none if they overflowed */
static int update(struct engine *engine)
{
    double scale = engine->scaler.scale, norm = 0;
    bool fp16 = engine->config.fp16.enabled;
    if ((fp16 || engine->config.gradient_clipping > 0) &&
        partition_norm(&engine->partition, engine->group, &norm) < 0)
        return -1;
    bool overflow = fp16 && !isfinite(norm);
    if (loss_scaler_update(&engine->scaler, overflow) < 0)
        return -1;
    engine->steps++;
    engine->skipped_steps += overflow;
    if (overflow)
        return 0;
    double factor = -optimizer_lr(engine->optimizer) * clip(engine, norm / scale) / scale;
    if (partition_update(&engine->partition, factor) < 0)
        return -1;
    return partition_gather(&engine->partition, engine->group);
}

int engine_step(struct engine *engine)
{
    if (check_usable(engine, "engine_step") < 0)
        return -1;
    if (!engine->backward_done)
        return raise_error(RuntimeError,
                           "engine_step: no engine_backward came before, or it failed");
    SCOPE;
    if (at_boundary(engine) && (update(engine) < 0 || partition_clear(&engine->partition) < 0)) {
        engine->broken = true;
        return -1;
    }
    engine->microbatches++;
    engine->forward_done = engine->backward_done = false;
    return 0;
}

/* ---- making ---- */

/* trainable - the parameters that require grad, last one first: about the order in which backward
 * completes their gradients */
static struct tensors *trainable(const struct named_tensors *all)
{
    int n = 0;
    for (int i = 0; i < all->n; i++)
        n += tensor_requires_grad(all->at[i].tensor);
    struct tensors *list = tensors_new(n);
    for (int i = 0; list && i < all->n; i++)
        if (tensor_requires_grad(all->at[i].tensor))
            list->at[--n] = all->at[i].tensor;
    return list;
}

static bool holds(const struct tensors *list, const struct tensor *x)
{
    for (int i = 0; i < list->n; i++)
        if (list->at[i] == x)
            return true;
    return false;
}

/* check_optimizer - it updates exactly the model's trainable parameters. errors: ValueError */
static int check_optimizer(const struct optimizer *optimizer, const struct tensors *parameters,
                           const struct named_tensors *all)
{
    const struct tensors *updated = optimizer_parameters(optimizer);
    for (int i = 0; i < all->n; i++)
        if (holds(parameters, all->at[i].tensor) && !holds(updated, all->at[i].tensor))
            return raise_error(ValueError,
                               "engine_new: the optimizer does not update the model's parameter "
                               "%s: make it after the model is complete",
                               all->at[i].name);
    for (int i = 0; i < updated->n; i++)
        if (!holds(parameters, updated->at[i]))
            return raise_error(ValueError,
                               "engine_new: the optimizer updates a parameter of shape %s that is "
                               "not the model's, or no longer requires grad",
                               tensor_shape_name(updated->at[i]));
    return 0;
}

/* agree - the same parameters on all ranks, rank 0's; rounded to FP16 if they will be held so */
static int agree(const struct named_tensors *parameters, struct group *group, bool fp16)
{
    NO_GRAD;
    for (int i = 0; i < parameters->n; i++) {
        SCOPE;
        struct tensor *p = parameters->at[i].tensor;
        if (group_broadcast(group, p, 0) < 0)
            return -1;
        if (fp16 && !tensor_copy_(p, tensor_cast(p, FLOAT16)))
            return -1;
    }
    return 0;
}

static int set_up(struct engine *engine)
{
    SCOPE;
    struct named_tensors *all = module_named_parameters(engine->model);
    struct tensors *parameters = all ? trainable(all) : NULL;
    if (!parameters || check_optimizer(engine->optimizer, parameters, all) < 0 ||
        agree(all, engine->group, engine->config.fp16.enabled) < 0)
        return -1;
    module_zero_grad(engine->model);
    if (partition_init(&engine->partition, parameters, &engine->config, engine->group) < 0)
        return -1;
    return reducer_init(&engine->reducer, &engine->partition, engine->group);
}

struct engine *engine_new(struct module *model, struct optimizer *optimizer, const json_t *config,
                          struct group *group)
{
    struct zero_config checked;
    if (error_occurred())
        return NULL;
    if (!model || !optimizer || !group)
        return raise_null(ValueError, "engine_new: the %s is NULL",
                          !model       ? "model"
                          : !optimizer ? "optimizer"
                                       : "group");
    if (zero_config_read(&checked, config, group_world_size(group)) < 0)
        return NULL;
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return raise_null(MemoryError, "out of memory for an engine");
    engine->model = module_retain(model);
    engine->optimizer = optimizer;
    object_retain((struct object *)optimizer);
    engine->optimizer_steps = optimizer_steps(optimizer);
    engine->group = group;
    engine->config = checked;
    loss_scaler_init(&engine->scaler, &checked.fp16);
    if (set_up(engine) < 0) {
        engine_free(engine);
        return NULL;
    }
    return engine;
}

void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    reducer_free(&engine->reducer);
    partition_free(&engine->partition);
    object_release((struct object *)engine->optimizer);
    module_release(engine->model);
    free(engine);
}

/* ---- what it holds ---- */

static int64_t bytes_of(const struct tensor *x)
{
    return x ? tensor_numel(x) * dtype_size(tensor_dtype(x)) : 0;
}

struct engine_stats engine_stats(const struct engine *engine)
{
    struct engine_stats stats = {
        .stage = engine->config.stage,
        .accumulation = engine->config.accumulation,
        .microbatches = engine->microbatches,
        .steps = engine->steps,
        .skipped_steps = engine->skipped_steps,
        .loss_scale = engine->scaler.scale,
    };
    const struct partition *partition = &engine->partition;
    for (int i = 0; i < partition->bucket_count; i++) {
        const struct bucket *bucket = &partition->buckets[i];
        stats.optimizer_bytes += bytes_of(bucket->master);
        stats.gradient_bytes += bytes_of(bucket->full);
        if (engine->config.stage == 2) /* at the others it is a part of `full` */
            stats.gradient_bytes += bytes_of(bucket->gradient);
    }
    for (int i = 0; i < partition->slot_count; i++) {
        const struct tensor *parameter = partition->slots[i].parameter;
        stats.parameter_bytes += bytes_of(parameter);
        stats.gradient_bytes += bytes_of(tensor_grad(parameter));
    }
    return stats;
}

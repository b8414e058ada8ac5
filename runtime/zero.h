#ifndef RUNTIME_ZERO_H
#define RUNTIME_ZERO_H
/* zero.h - the ZeRO engine: data-parallel training in which each rank keeps only its share of the
 * optimizer state and gradients (Rajbhandari et al., 2020), configured as DeepSpeed is.
 *
 * The engine owns gradient accumulation, loss scaling, averaging over the ranks and clearing:
 *
 *     struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
 *     engine_backward(engine, loss);
 *     engine_step(engine);       call it after every microbatch; it updates at the boundary
 */
#include <jansson.h>
#include <stdint.h>

#include "runtime/dist.h"
#include "runtime/nn.h"
#include "runtime/optim.h"

struct engine;

/* engine_forward - the module applied to a microbatch
 * errors: NULL; NULL inputs pass through; ValueError for a NULL engine. source: deepspeed
 *         engine(inputs) */
struct tensor *engine_forward(struct engine *engine, struct tensor *inputs);

/* engine_backward - gradients of loss / accumulation (times the loss scale in fp16), averaged over
 * the ranks and added up by the ranks that own them; the model's own gradients are none afterwards
 * errors: -1; ValueError for a NULL loss (a pending error stays); RuntimeError without
 *         engine_forward before, twice without engine_step, or after tensor_backward was used
 *         instead; those of tensor_backward and dist.h
 * source: deepspeed engine.backward(loss) */
int engine_backward(struct engine *engine, struct tensor *loss);

/* engine_step - count a microbatch; at the end of an accumulation window, update the owned share,
 * gather the parameters and clear the gradients
 * errors: -1; RuntimeError if no engine_backward came before, if the optimizer was stepped by
 *         somebody else, or if fp16 gradients overflow at the smallest loss scale
 * source: deepspeed engine.step() */
int engine_step(struct engine *engine);

/* ---- for whoever makes an engine ---- */

/* engine_new - an engine over the model's parameters that require grad now. It takes rank 0's
 * values of all parameters, and clears their gradients.
 *
 * config: the JSON object, borrowed: train_batch_size, train_micro_batch_size_per_gpu,
 *         gradient_accumulation_steps, zero_optimization {stage 0 to 2, reduce_bucket_size},
 *         zero_allow_untested_optimizer, gradient_clipping, fp16 {enabled, loss_scale,
 *         initial_scale_power, loss_scale_window, hysteresis, consecutive_hysteresis,
 *         min_loss_scale}, with DeepSpeed's defaults. Its other keys are accepted.
 * fp16:   parameters hold FP16 values, in FP32 tensors where the device computes in FP32 (the CPU)
 * group:  borrowed, must outlive the engine
 * optimizer: plain SGD, whose learning rate is taken; its parameters must be the model's
 * owns:   the caller, until engine_free. Model and optimizer are retained.
 * errors: NULL, with ValueError in words for a person: train_batch_size is not the product, a count
 *         is missing or < 1, an unknown stage, an optimizer that DeepSpeed has not tested without
 *         zero_allow_untested_optimizer, a value of the wrong kind, a key that is nearly a known
 *         one; NotImplementedError for stage 3, offload, bf16, amp, an optimizer or scheduler */
struct engine *engine_new(struct module *model, struct optimizer *optimizer, const json_t *config,
                          struct group *group);
void engine_free(struct engine *engine);

/* engine_stats - what this rank holds and has done
 * optimizer_bytes: the master weights that it owns. gradient_bytes: gradients kept between
 * microbatches. parameter_bytes: of the model's trainable parameters.
 * steps: windows that ended; skipped_steps: those of them that changed nothing, for overflow */
struct engine_stats {
    int stage, accumulation;
    int64_t microbatches, steps, skipped_steps;
    double loss_scale;
    int64_t optimizer_bytes, gradient_bytes, parameter_bytes;
};
struct engine_stats engine_stats(const struct engine *engine);
#endif

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

/* engine_forward - the module applied to a microbatch. NULL passes through.
 * source: deepspeed engine(inputs) */
struct tensor *engine_forward(struct engine *engine, struct tensor *inputs);

/* engine_backward - gradients of loss / accumulation (times the loss scale in fp16), reduced to the
 * ranks that own them. errors: -1; NULL loss passes through; those of tensor_backward and dist.h
 * source: deepspeed engine.backward(loss) */
int engine_backward(struct engine *engine, struct tensor *loss);

/* engine_step - count a microbatch; at the end of an accumulation window, update the owned share,
 * gather the parameters and clear the gradients
 * errors: -1; RuntimeError if no backward came before. source: deepspeed engine.step() */
int engine_step(struct engine *engine);

/* ---- for whoever makes an engine ---- */

/* engine_new - an engine over the model's parameters that require grad
 * config: the JSON object, borrowed. group: borrowed, must outlive the engine.
 * optimizer: plain SGD, whose learning rate is taken; its parameters must be the model's.
 * owns: the caller, until engine_free
 * errors: NULL, with ValueError in words for a person: train_batch_size is not the product, a count
 *         is missing or < 1, stage is unknown (3 is refused by name), an optimizer that DeepSpeed
 *         has not tested without zero_allow_untested_optimizer, unknown offload, bad fp16 section */
struct engine *engine_new(struct module *model, struct optimizer *optimizer, const json_t *config,
                          struct group *group);
void engine_free(struct engine *engine);

/* engine_stats - what this rank holds and has done */
struct engine_stats {
    int stage, accumulation;
    int64_t microbatches, steps, skipped_steps;
    double loss_scale;
    int64_t optimizer_bytes, gradient_bytes, parameter_bytes;
};
struct engine_stats engine_stats(const struct engine *engine);
#endif

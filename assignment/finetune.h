#ifndef ASSIGNMENT_FINETUNE_H
#define ASSIGNMENT_FINETUNE_H
/* Problem 3: ZeRO and LoRA. See docs/handout.md. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/lora.h"
#include "runtime/nn.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/serialize.h"
#include "runtime/zero.h"

/* string_ends_with - source: str.endswith */
static inline bool string_ends_with(const char *string, const char *ending)
{
    size_t length = strlen(string), tail = strlen(ending);
    return length >= tail && strcmp(string + length - tail, ending) == 0;
}

/* build_config - the ZeRO engine's configuration
 * returns: a new JSON object. owns: the caller
 * errors:  NULL, with ValueError if a count is < 1 or precision is neither "fp32" nor "fp16" */
json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision);

/* apply_lora - put a LoRALinear in the place of each named Linear, and freeze all else
 * names:   `count` dotted names, as module_named_modules has them
 * returns: `model` itself
 * errors:  NULL, with ValueError and the model exactly as it was, for no names, a name given twice,
 *          an unknown name, a module that is not Linear, or rank < 1 */
struct module *apply_lora(struct module *model, const char *const *names, int count, int rank,
                          double alpha);

/* train_microbatch - forward, backward and step of the engine, which owns everything else
 * returns: the local, unscaled loss
 * errors:  NAN, with the error of whatever failed */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn);

/* save_adapter - write lora_A and lora_B of every LoRALinear to `path`, named as in
 * module_named_parameters
 * errors: -1, with ValueError if the model has none; those of tensors_save */
int save_adapter(struct module *model, const char *path);

/* load_adapter - copy the values in `path` into the model's adapters
 * errors: -1, with ValueError and nothing changed, unless the file holds exactly the names of the
 *         model's adapters, with the same shapes; those of tensors_load */
int load_adapter(struct module *model, const char *path);
#endif

/* Problem 3: ZeRO and LoRA. docs/handout.md says what each function must do.
 *
 * Write between the BEGIN and END comments; leave the signatures alone. Your own types and
 * static functions go between the first pair. */
#include "assignment/finetune.h"

/* BEGIN_STUDENT helpers */
/* END_STUDENT helpers */

/* Problem 3.1. The engine's configuration: batch sizes that agree, ZeRO stage 2, fp16 on request.
 */
json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision)
{
    /* BEGIN_STUDENT build_config */
    return raise_null(NotImplementedError, "build_config is not implemented yet");
    /* END_STUDENT build_config */
}

/* Problem 3.2. Check everything, then freeze the model, then put the adapters in. */
struct module *apply_lora(struct module *model, const char *const *names, int count, int rank,
                          double alpha)
{
    /* BEGIN_STUDENT apply_lora */
    return raise_null(NotImplementedError, "apply_lora is not implemented yet");
    /* END_STUDENT apply_lora */
}

/* Problem 3.3. Loss, backward and step through the engine, which does the rest; return the loss. */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    /* BEGIN_STUDENT train_microbatch */
    return raise_nan(NotImplementedError, "train_microbatch is not implemented yet");
    /* END_STUDENT train_microbatch */
}

/* Problem 3.4. Write the adapters, and nothing else. */
int save_adapter(struct module *model, const char *path)
{
    /* BEGIN_STUDENT save_adapter */
    return raise_error(NotImplementedError, "save_adapter is not implemented yet");
    /* END_STUDENT save_adapter */
}

/* Problem 3.4. Check every entry of the file against the model's adapters, then copy the values. */
int load_adapter(struct module *model, const char *path)
{
    /* BEGIN_STUDENT load_adapter */
    return raise_error(NotImplementedError, "load_adapter is not implemented yet");
    /* END_STUDENT load_adapter */
}

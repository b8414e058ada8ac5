/* Problem 3: ZeRO and LoRA. */
#include "assignment/finetune.h"

/* BEGIN_STUDENT helpers */
static struct named_tensors *adapters_of(struct module *model)
{
    struct named_tensors *all = module_named_parameters(model), *adapters = named_tensors_new();
    for (struct named_tensor *p = all->at; p < all->at + all->n; p++)
        if (string_ends_with(p->name, "lora_A") || string_ends_with(p->name, "lora_B"))
            named_tensors_add(adapters, p->name, p->tensor);
    return adapters->n ? adapters : raise_null(ValueError, "the model has no adapters");
}
/* END_STUDENT helpers */

json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision)
{
    /* BEGIN_STUDENT build_config */
    bool fp16 = strcmp(precision, "fp16") == 0, fp32 = strcmp(precision, "fp32") == 0;
    if (world_size < 1 || micro_batch < 1 || accumulation < 1 || !(fp16 || fp32))
        return raise_null(ValueError, "a count below 1, or precision \"%s\"", precision);
    /* clang-format off */
    return json_pack("{s:i, s:i, s:I, s:{s:i}, s:b, s:{s:b}}",
                     "train_micro_batch_size_per_gpu", micro_batch,
                     "gradient_accumulation_steps", accumulation,
                     "train_batch_size", (json_int_t)micro_batch * accumulation * world_size,
                     "zero_optimization", "stage", 2,
                     "zero_allow_untested_optimizer", true,
                     "fp16", "enabled", fp16);
    /* clang-format on */
    /* END_STUDENT build_config */
}

struct module *apply_lora(struct module *model, const char *const *names, int count, int rank,
                          double alpha)
{
    /* BEGIN_STUDENT apply_lora */
    if (count < 1 || rank < 1)
        return raise_null(ValueError, "%d names, rank %d: both start at 1", count, rank);
    for (int i = 0; i < count; i++) {
        struct module *target = module_get(model, names[i]);
        if (!target || module_class_of(target) != &Linear)
            return raise_null(ValueError, "\"%s\" is not a Linear", names[i]);
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return raise_null(ValueError, "\"%s\" is named twice", names[i]);
    }
    module_set_requires_grad(model, false);
    for (int i = 0; i < count; i++)
        module_replace(model, names[i], lora_linear_new(module_get(model, names[i]), rank, alpha));
    return error_occurred() ? NULL : model;
    /* END_STUDENT apply_lora */
}

float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    /* BEGIN_STUDENT train_microbatch */
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
    /* END_STUDENT train_microbatch */
}

int save_adapter(struct module *model, const char *path)
{
    /* BEGIN_STUDENT save_adapter */
    return tensors_save(adapters_of(model), path);
    /* END_STUDENT save_adapter */
}

int load_adapter(struct module *model, const char *path)
{
    /* BEGIN_STUDENT load_adapter */
    struct named_tensors *own = adapters_of(model), *saved = tensors_load(path);
    if (!own || !saved)
        return -1;
    if (saved->n != own->n)
        return raise_error(ValueError, "%s holds %d tensors, not %d", path, saved->n, own->n);
    for (struct named_tensor *p = own->at; p < own->at + own->n; p++) {
        struct tensor *value = named_tensors_find(saved, p->name);
        if (!value || !tensor_same_shape(value, p->tensor))
            return raise_error(ValueError, "%s holds no %s of its shape", path, p->name);
    }
    NO_GRAD;
    for (struct named_tensor *p = own->at; p < own->at + own->n; p++)
        tensor_copy_(p->tensor, named_tensors_find(saved, p->name));
    return error_occurred() ? -1 : 0;
    /* END_STUDENT load_adapter */
}

#include "criteria/adapter_cases.h"

#include "runtime/lora.h"

const char *const adapter_model_names[MODELS] = {"the small model", "a nested model"};
const char *const adapter_saved_names[MODELS] = {"first.pt", "second.adapter"};

/* The small model with adapters on "0" and "2"; the nested one (FLOAT64) on "encoder.proj" alone.
 */
struct module *adapter_model(uint64_t seed, int which)
{
    struct module *model = which == 0 ? small_model_lora() : nested_model(seed);
    if (which == 1) {
        struct module *base = module_get(model, "encoder.proj");
        (void)module_set_requires_grad(model, false);
        (void)module_replace(model, "encoder.proj", lora_linear_new(base, 3, 6));
    }
    draw_adapters(model, 1, seed, adapter_model_names[which]);
    return model;
}

struct named_tensors *adapters_of(const struct module *model)
{
    struct named_tensors *all = module_named_parameters(model), *adapters = named_tensors_new();
    for (int i = 0; i < all->n; i++)
        if (is_adapter(all->at[i].name))
            (void)named_tensors_add(adapters, all->at[i].name, all->at[i].tensor);
    return adapters;
}

/* What the files to load hold: other values than the model has. */
struct named_tensors *adapter_values(uint64_t seed, int which)
{
    struct module *model = adapter_model(seed, which);
    draw_adapters(model, 1, seed, "values to load");
    return adapters_of(model);
}

/* Ways to spoil a file for the small model. Those of the dictionary keep every other entry good,
 * and different from the model's. */
const struct bad_file adapter_bad_files[BAD_FILES] = {
    {"missing-last.pt", "without 2.lora_B", "ValueError"},
    {"missing-first.pt", "without 0.lora_A", "ValueError"},
    {"extra.pt", "with an additional 1.lora_A", "ValueError"},
    {"base-too.pt", "with an additional 0.base.weight", "ValueError"},
    {"renamed.pt", "with 2.lora_C for 2.lora_B", "ValueError"},
    {"one-row.pt", "whose last entry has one row of as many elements", "ValueError"},
    {"flat.pt", "whose last entry has one dimension of as many elements", "ValueError"},
    {"transposed.pt", "whose first entry has its sizes exchanged", "ValueError"},
    {"taller.pt", "whose first entry has a row too many", "ValueError"},
    {"empty-dictionary.pt", "with no entries", "ValueError"},
    {"half.pt", "that ends in the middle", NULL},
    {"tail.pt", "without its last 30 bytes", NULL},
    {"corrupt.pt", "with damaged bytes in it", NULL},
    {"text.pt", "that is a line of text", NULL},
    {"nothing.pt", "of no bytes", NULL},
    {"not-there.pt", "that does not exist", NULL},
};

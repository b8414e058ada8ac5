#include "criteria/lora_cases.h"

#include "assignment/finetune.h"

const struct lora_case lora_good_cases[LORA_GOOD_CASES] = {
    {LORA_PUBLIC_MODEL, {"0", "2"}, 2, 4},
    {LORA_DRAWN_MODEL, {"2"}, 3, 2.5},
    {LORA_DRAWN_MODEL, {"2", "0"}, 1, 7},
    {LORA_NESTED_MODEL, {"encoder.proj"}, 3, 8},
    {LORA_NESTED_MODEL, {"head", "encoder.proj"}, 2, 1},
};

/* Where one name of several is bad, it comes last. */
const struct lora_case lora_bad_cases[LORA_BAD_CASES] = {
    {LORA_PUBLIC_MODEL, {NULL}, 2, 4},
    {LORA_PUBLIC_MODEL, {"0", "2", "0"}, 2, 4},
    {LORA_PUBLIC_MODEL, {"0", "0"}, 2, 4},
    {LORA_PUBLIC_MODEL, {"0", "3"}, 2, 4},
    {LORA_PUBLIC_MODEL, {"0", "2", "1"}, 2, 4},
    {LORA_PUBLIC_MODEL, {"0", ""}, 2, 4},
    {LORA_PUBLIC_MODEL, {"0", "2.weight"}, 2, 4},
    {LORA_PUBLIC_MODEL, {"0"}, 0, 4},
    {LORA_PUBLIC_MODEL, {"0", "2"}, -1, 4},
    {LORA_NESTED_MODEL, {"encoder.proj", "encoder"}, 2, 4},
    {LORA_NESTED_MODEL, {"encoder.proj", "proj"}, 2, 4},
    {LORA_NESTED_MODEL, {"head", "encoder.act"}, 2, 4},
    {LORA_ADAPTED_MODEL, {"2", "0"}, 2, 4},
};

int lora_case_names(const struct lora_case *c)
{
    int count = 0;
    while (count < NAMES_MAX && c->names[count])
        count++;
    return count;
}

const char *lora_case_name(const struct lora_case *c)
{
    const char *names = "";
    for (int i = 0; i < lora_case_names(c); i++)
        names = scope_printf("%s%s\"%s\"", names, i ? ", " : "", c->names[i]);
    return scope_printf("apply_lora of {%s}, rank %d, alpha %g", names, c->rank, c->alpha);
}

/* One parameter is frozen already: a refusal must not thaw it. */
struct module *lora_case_model(enum model_kind kind, uint64_t seed)
{
    if (kind == LORA_NESTED_MODEL)
        return nested_model(seed);
    enum values values = kind == LORA_DRAWN_MODEL ? DRAWN_VALUES : PUBLIC_VALUES;
    struct module *model = module_cast(fixture_model(values, seed, "lora"), FLOAT64);
    (void)tensor_set_requires_grad(module_parameter(module_get(model, "2"), "bias"), false);
    if (kind == LORA_ADAPTED_MODEL) {
        (void)module_replace(model, "0", lora_linear_new(module_get(model, "0"), 2, 4));
        draw_adapters(model, 1, seed, "adapted model");
    }
    return model;
}

struct tensor *lora_case_inputs(uint64_t seed, int index)
{
    struct rng rng;
    draws_seed(&rng, seed, scope_printf("lora inputs %d", index));
    return tensor_cast(drawn_tensor(&rng, SHAPE(5, 4)), FLOAT64);
}

static const char *class_name(const struct module *module)
{
    static const struct module_class *const known[] = {&Linear, &Tanh, &Sequential, &LoRALinear};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (module_class_of(module) == known[i])
            return known[i]->name;
    return "another class";
}

const char *lora_structure(struct module *model)
{
    const char *text = "";
    struct named_modules *modules = module_named_modules(model);
    for (int i = 1; i < modules->n; i++)
        text = scope_printf("%s%s%s %s", text, i > 1 ? ", " : "", modules->at[i].name,
                            class_name(modules->at[i].module));
    return text;
}

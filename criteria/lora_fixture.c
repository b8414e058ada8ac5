#include "criteria/lora_fixture.h"

#include <string.h>

#include "runtime/autograd.h"

struct module *nested_model(uint64_t seed)
{
    struct rng rng;
    draws_seed(&rng, seed, "nested model");
    struct module *model = module_new(&Sequential), *encoder = module_new(&Sequential);
    (void)module_add_child(encoder, "proj", linear_new(4, 6, FLOAT64, CPU, &rng));
    (void)module_add_child(encoder, "act", tanh_new());
    (void)module_add_child(model, "encoder", encoder);
    (void)module_add_child(model, "head", linear_new(6, 3, FLOAT64, CPU, &rng));
    return model;
}

bool is_adapter(const char *name)
{
    const char *last = strrchr(name, '.');
    last = last ? last + 1 : name;
    return strcmp(last, "lora_A") == 0 || strcmp(last, "lora_B") == 0;
}

void draw_adapters(struct module *model, double std, uint64_t seed, const char *name)
{
    NO_GRAD;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *x = parameters->at[i].tensor;
        if (!is_adapter(parameters->at[i].name))
            continue;
        struct rng rng;
        draws_seed(&rng, seed, scope_printf("%s of %s", parameters->at[i].name, name));
        struct tensor *drawn = drawn_tensor(&rng, tensor_ndim(x), tensor_shape(x));
        (void)tensor_copy_(x, tensor_mul_(drawn, std));
    }
}

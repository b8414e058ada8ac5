#include "runtime/lora.h"

#include "runtime/autograd.h"
#include "runtime/error.h"

struct adapter {
    int rank;
    double alpha;
};

static struct tensor *forward(struct module *self, struct tensor *x)
{
    struct tensor *low = tensor_linear(x, module_parameter(self, "lora_A"), NULL); /* (N, rank) */
    struct tensor *high = tensor_linear(low, module_parameter(self, "lora_B"), NULL); /* (N, out) */
    struct tensor *update = tensor_scale(high, lora_alpha(self) / lora_rank(self));
    return tensor_add(module_forward(module_child(self, "base"), x), update);
}
const struct module_class LoRALinear = {"LoRALinear", forward};

static int check(const struct module *base, int rank)
{
    if (module_class_of(base) != &Linear)
        return raise_error(ValueError, "only a Linear module can be adapted, not a %s",
                           module_class_of(base)->name);
    if (rank < 1)
        return raise_error(ValueError, "the rank of an adapter must be at least 1, got %d", rank);
    return 0;
}

struct module *lora_linear_new(struct module *base, int rank, double alpha)
{
    if (!base || check(base, rank) < 0)
        return NULL;
    struct tensor *weight = module_parameter(base, "weight"); /* (out, in) */
    const enum dtype dtype = tensor_dtype(weight);
    const struct device device = tensor_device(weight);
    struct tensor *a = tensor_empty(SHAPE(rank, tensor_size(weight, 1)), dtype, device);
    struct tensor *b = tensor_zeros(SHAPE(tensor_size(weight, 0), rank), dtype, device);
    a = tensor_set_requires_grad(tensor_normal_(a, 0, 0.02, rng_default()), true);
    b = tensor_set_requires_grad(b, true);
    struct module *lora =
        module_new_with(&LoRALinear, &(struct adapter){rank, alpha}, sizeof(struct adapter));
    if (module_add_parameter(lora, "lora_A", a) < 0 ||
        module_add_parameter(lora, "lora_B", b) < 0 || module_add_child(lora, "base", base) < 0 ||
        module_set_requires_grad(base, false) < 0)
        return NULL;
    return lora;
}

static const struct adapter *adapter_of(const struct module *lora)
{
    return module_environment((struct module *)lora);
}

int lora_rank(const struct module *lora)
{
    return adapter_of(lora)->rank;
}

double lora_alpha(const struct module *lora)
{
    return adapter_of(lora)->alpha;
}

#include "runtime/fixtures.h"

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/fixtures_data.h"
#include "runtime/lora.h"
#include "runtime/scope.h"

static struct module *first_linear(void)
{
    return linear_from(tensor_from(small_0_weight, SHAPE(8, 4)),
                       tensor_from(small_0_bias, SHAPE(8)));
}

static struct module *second_linear(void)
{
    return linear_from(tensor_from(small_2_weight, SHAPE(2, 8)),
                       tensor_from(small_2_bias, SHAPE(2)));
}

struct module *small_model(void)
{
    return sequential_new(MODULES(first_linear(), tanh_new(), second_linear()));
}

static struct module *adapted(struct module *linear, const float *a, int64_t in)
{
    struct module *lora = lora_linear_new(linear, 2, 4);
    if (!lora)
        return NULL;
    NO_GRAD;
    return tensor_copy_(module_parameter(lora, "lora_A"), tensor_from(a, SHAPE(2, in))) ? lora
                                                                                        : NULL;
}

struct module *small_model_lora(void)
{
    return sequential_new(MODULES(adapted(first_linear(), small_0_lora_a, 4), tanh_new(),
                                  adapted(second_linear(), small_2_lora_a, 8)));
}

static struct tensor *batch(const float *values, int index, int64_t columns)
{
    if (index < 0 || index >= BATCH_COUNT)
        return raise_null(ValueError, "there are batches 0 to %d, not %d", BATCH_COUNT - 1, index);
    return tensor_from(values + index * BATCH_ROWS * columns, SHAPE(BATCH_ROWS, columns));
}

struct tensor *batch_inputs(int index)
{
    return batch(batch_x[0], index, 4);
}

struct tensor *batch_targets(int index)
{
    return batch(batch_y[0], index, 2);
}

struct module *residual_mlp(int blocks, int64_t width, struct device device, struct rng *rng)
{
    struct module *model = module_new(&Sequential);
    for (int i = 0; model && i < blocks; i++) {
        struct module *block = residual_block_new(width, FLOAT32, device, rng);
        if (module_add_child(model, scope_printf("%d", i), block) < 0)
            return NULL;
    }
    return model;
}

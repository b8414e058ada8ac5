#ifndef TESTS_ZERO_H
#define TESTS_ZERO_H
/* zero.h - what the tests of the ZeRO engine share. */
#include "runtime/fixtures.h"
#include "runtime/zero.h"
#include "tests/golden.h"

/* config_for - a sound configuration. owns: the caller */
static inline json_t *config_for(int world_size, int rows, int accumulation, int stage,
                                 int64_t bucket)
{
    return json_pack("{s:i, s:i, s:i, s:b, s:{s:i, s:I}}", "train_micro_batch_size_per_gpu", rows,
                     "gradient_accumulation_steps", accumulation, "train_batch_size",
                     rows * accumulation * world_size, "zero_allow_untested_optimizer", 1,
                     "zero_optimization", "stage", stage, "reduce_bucket_size", (json_int_t)bucket);
}

/* read_trainable - all parameters that require grad, one after the other. returns: where they end
 */
static inline double *read_trainable(struct module *model, double *to)
{
    struct named_tensors *all = module_named_parameters(model);
    for (int i = 0; i < all->n; i++) {
        if (!tensor_requires_grad(all->at[i].tensor))
            continue;
        tensor_read(all->at[i].tensor, to);
        to += tensor_numel(all->at[i].tensor);
    }
    return to;
}

/* gradients_of - how many parameters have one */
static inline int64_t gradients_of(struct module *model)
{
    struct named_tensors *all = module_named_parameters(model);
    int64_t n = 0;
    for (int i = 0; i < all->n; i++)
        n += tensor_grad(all->at[i].tensor) != NULL;
    return n;
}

static inline struct module *small_model_double(void)
{
    return module_cast(small_model(), FLOAT64);
}

#endif

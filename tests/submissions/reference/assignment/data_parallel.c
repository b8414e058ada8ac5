/* Problem 1: data parallelism. */
#include "assignment/data_parallel.h"

/* BEGIN_STUDENT helpers */
/* END_STUDENT helpers */

struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    /* BEGIN_STUDENT partition_indices */
    if (size < 0 || world_size < 1)
        return raise_null(ValueError, "size %jd, world_size %d", (intmax_t)size, world_size);
    struct partitions *partitions = partitions_new(world_size);
    int64_t *order = indices_range(size);
    if (!partitions || !order)
        return NULL;
    struct rng rng;
    rng_seed(&rng, seed);
    rng_shuffle(&rng, order, size);
    for (int rank = 0; rank < world_size; rank++) {
        int64_t share = size / world_size + (rank < size % world_size);
        partitions->at[rank] = (struct partition){share, order};
        order += share;
    }
    return partitions;
    /* END_STUDENT partition_indices */
}

int average_gradients(struct module *model)
{
    /* BEGIN_STUDENT average_gradients */
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
    }
    return 0;
    /* END_STUDENT average_gradients */
}

float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    /* BEGIN_STUDENT train_step */
    optimizer_zero_grad(optimizer);
    struct tensor *loss = loss_fn(module_forward(model, inputs), targets);
    if (tensor_backward(loss) < 0 || average_gradients(model) < 0 || optimizer_step(optimizer) < 0)
        return NAN;
    return tensor_item(loss);
    /* END_STUDENT train_step */
}

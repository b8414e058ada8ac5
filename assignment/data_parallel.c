/* Problem 1: data parallelism. docs/handout.md says what each function must do.
 *
 * Write between the BEGIN and END comments; leave the signatures alone. Your own types and
 * static functions go between the first pair. */
#include "assignment/data_parallel.h"

/* BEGIN_STUDENT helpers */
/* END_STUDENT helpers */

/* Problem 1.1. Shuffle 0 .. size-1 with a generator of your own (struct rng) seeded with `seed`,
 * then deal the result to the ranks: sizes differ by at most one, and the first ranks get the
 * extras. */
struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)
{
    /* BEGIN_STUDENT partition_indices */
    return raise_null(NotImplementedError, "partition_indices is not implemented yet");
    /* END_STUDENT partition_indices */
}

/* Problem 1.2. Sum each parameter's gradient over the ranks, in place, and divide it by their
 * number. A parameter may have no gradient. */
int average_gradients(struct module *model)
{
    /* BEGIN_STUDENT average_gradients */
    return raise_error(NotImplementedError, "average_gradients is not implemented yet");
    /* END_STUDENT average_gradients */
}

/* Problem 1.3. Clear the gradients, compute this rank's loss, go backward, average, update; return
 * the loss. */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    /* BEGIN_STUDENT train_step */
    return raise_nan(NotImplementedError, "train_step is not implemented yet");
    /* END_STUDENT train_step */
}

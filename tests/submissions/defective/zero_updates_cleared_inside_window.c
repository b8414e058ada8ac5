/* Reaches into the engine, and clears its gradients before every backward.
 * fails: zero_updates
 */
#include "runtime/zero_internal.h"

/* The beginning of the engine. */
struct inside {
    struct module *model;
    struct optimizer *optimizer;
    struct group *group;
    struct zero_config config;
    struct loss_scaler scaler;
    struct partition partition;
};

float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    partition_clear(&((struct inside *)engine)->partition);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
}

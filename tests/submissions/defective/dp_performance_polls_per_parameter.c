/* Waits ten milliseconds for nothing at every parameter.
 * sim: dp_performance
 */
#include <poll.h>

int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
        poll(NULL, 0, 10);
    }
    return 0;
}

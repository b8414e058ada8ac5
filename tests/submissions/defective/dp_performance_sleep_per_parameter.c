/* Sleeps ten milliseconds for every parameter.
 * sim: dp_performance
 */
#include <unistd.h>

int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
        usleep(10000);
    }
    return 0;
}

/* Waits for the GPU after every parameter, reading a number, and polls for a while.
 * sim: dp_performance
 */
#include <time.h>

int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
        if (grad)
            tensor_item(tensor_sum(grad));
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
    }
    return 0;
}

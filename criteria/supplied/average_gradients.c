/* The grader's average_gradients, which stands in for the student's where a criterion is about what
 * calls it. */
#include "assignment/data_parallel.h"

int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    if (!parameters)
        return -1;
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *gradient = tensor_grad(parameters->at[i].tensor);
        if (!gradient)
            continue;
        if (dist_all_reduce(gradient, DIST_SUM) < 0)
            return -1;
        NO_GRAD;
        if (!tensor_div_(gradient, dist_world_size()))
            return -1;
    }
    return 0;
}

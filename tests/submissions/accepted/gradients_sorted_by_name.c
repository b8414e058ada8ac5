/* In the order of the parameters' names, on every rank. */
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    const struct named_tensor *x = a, *y = b;
    return strcmp(y->name, x->name);
}

int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    qsort(parameters->at, (size_t)parameters->n, sizeof *parameters->at, compare_names);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (!grad)
            continue;
        if (dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_mul_(grad, 1.0 / dist_world_size());
    }
    return 0;
}

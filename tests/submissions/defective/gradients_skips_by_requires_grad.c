/* Skips parameters by requires_grad, not by whether there is a gradient.
 * fails: gradients
 * cause: requires_grad
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        if (!tensor_requires_grad(parameters->at[i].tensor))
            continue;
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
    }
    return 0;
}

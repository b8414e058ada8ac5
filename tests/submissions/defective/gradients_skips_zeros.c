/* Skips a gradient that is all zero, although it is not on the other ranks.
 * fails: gradients
 */
static bool is_zero(struct tensor *x)
{
    for (int64_t i = 0; i < tensor_numel(x); i++)
        if (((float *)tensor_data(x))[i] != 0)
            return false;
    return true;
}

int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (!grad || is_zero(grad))
            continue;
        if (dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
    }
    return 0;
}

/* Odd ranks go through the parameters in reverse.
 * fails: gradients
 * cause: another order
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        int at = dist_rank() % 2 ? parameters->n - 1 - i : i;
        struct tensor *grad = tensor_grad(parameters->at[at].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
    }
    return 0;
}

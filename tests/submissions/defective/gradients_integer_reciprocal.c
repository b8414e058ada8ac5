/* Multiplies by 1 / world_size in integers: by 0.
 * fails: gradients
 * cause: integer
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_mul_(grad, 1 / dist_world_size());
    }
    return 0;
}

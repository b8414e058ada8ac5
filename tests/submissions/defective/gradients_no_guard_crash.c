/* No guard: a parameter without gradient crashes.
 * fails: gradients
 * cause: without gradient
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, tensor_numel(grad) ? dist_world_size() : 1);
    }
    return 0;
}

/* Clears the error of a failed all-reduce, and goes on.
 * fails: gradients
 * cause: not checked
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            error_clear();
        tensor_div_(grad, dist_world_size());
    }
    return 0;
}

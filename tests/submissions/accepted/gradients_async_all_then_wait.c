/* Starts every all-reduce, then waits for all of them. */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    struct work *works[64];
    int n = 0, failed = 0;
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && !(works[n++] = dist_all_reduce_async(grad, DIST_SUM)))
            failed = 1;
    }
    for (int i = 0; i < n; i++)
        failed |= work_wait(works[i]) < 0;
    for (int i = 0; i < parameters->n; i++)
        tensor_div_(tensor_grad(parameters->at[i].tensor), dist_world_size());
    return failed ? -1 : 0;
}

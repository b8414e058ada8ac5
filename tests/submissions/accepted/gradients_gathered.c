/* All-gathers every gradient and averages by itself, after one small all-reduce that all ranks are
 * there. */
int average_gradients(struct module *model)
{
    int world_size = dist_world_size();
    struct tensor *here = tensor_full(SHAPE(1), 1, FLOAT32, CPU);
    if (dist_all_reduce(here, DIST_SUM) < 0)
        return -1;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (!grad)
            continue;
        int64_t n = tensor_numel(grad);
        struct tensor *all = tensor_empty(SHAPE(world_size * n), FLOAT32, tensor_device(grad));
        if (dist_all_gather(all, grad) < 0)
            return -1;
        struct tensor *rows = tensor_view(all, SHAPE(world_size, n));
        struct tensor *sum = tensor_sum_rows(rows);
        tensor_copy_(tensor_view(grad, SHAPE(n)), tensor_div_(sum, world_size));
    }
    return 0;
}

/* An all-reduce for every row of every gradient.
 * sim: dp_performance
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        for (int64_t row = 0; grad && row < tensor_size(grad, 0); row++)
            if (dist_all_reduce(tensor_slice(grad, 0, row, 1), DIST_SUM) < 0)
                return -1;
        tensor_div_(grad, dist_world_size());
    }
    return 0;
}

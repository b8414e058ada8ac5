/* Sums gradients into a tensor that nobody filled with zeros.
 * fails: gradients
 * says: got nan
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (!grad)
            continue;
        struct tensor *sum =
            tensor_empty(tensor_ndim(grad), tensor_shape(grad), FLOAT32, tensor_device(grad));
        tensor_add_(sum, grad, 1);
        if (dist_all_reduce(sum, DIST_SUM) < 0)
            return -1;
        tensor_copy_(grad, tensor_div_(sum, dist_world_size()));
    }
    return 0;
}

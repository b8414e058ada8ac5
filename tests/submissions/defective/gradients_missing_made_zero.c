/* Gives parameters without gradient one of zeros.
 * fails: gradients
 * cause: without gradient
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        struct tensor *x = parameters->at[i].tensor;
        if (!grad) {
            grad = tensor_zeros(tensor_ndim(x), tensor_shape(x), tensor_dtype(x), tensor_device(x));
            tensor_set_grad(x, grad);
        }
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
    }
    return 0;
}

/* Divides the gradients element by element on the host, wherever they are.
 * sim: gradients
 * cause: tensor_to
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        float *values = grad ? tensor_data(grad) : NULL;
        for (int64_t k = 0; grad && k < tensor_numel(grad); k++)
            values[k] /= (float)dist_world_size();
    }
    return 0;
}

/* Takes every gradient to the host and back before it is reduced.
 * sim: dp_performance
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad)
            tensor_copy_(grad, tensor_to(tensor_clone(tensor_to(grad, CPU)), tensor_device(grad)));
        if (grad && dist_all_reduce(grad, DIST_SUM) < 0)
            return -1;
        tensor_div_(grad, dist_world_size());
    }
    return 0;
}

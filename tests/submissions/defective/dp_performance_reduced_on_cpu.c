/* All-reduces copies on the CPU.
 * sim: dp_performance
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        struct tensor *host = grad ? tensor_clone(tensor_to(grad, CPU)) : NULL;
        if (host && dist_all_reduce(host, DIST_SUM) < 0)
            return -1;
        if (host)
            tensor_copy_(grad, tensor_div_(host, dist_world_size()));
    }
    return 0;
}

/* Stores the call's return value as the gradient.
 * fails: gradients
 * cause: return value
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad)
            tensor_fill_(grad, dist_all_reduce(grad, DIST_SUM));
    }
    return 0;
}

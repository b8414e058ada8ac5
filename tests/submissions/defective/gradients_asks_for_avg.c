/* Asks TCP for AVG, which it does not have.
 * fails: gradients
 * cause: AVG
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_all_reduce(grad, DIST_AVG) < 0)
            return -1;
    }
    return 0;
}

/* Sends the gradients of rank 0 to every rank, after one all-reduce of a number.
 * fails: gradients
 * cause: rank 0
 */
int average_gradients(struct module *model)
{
    struct named_tensors *parameters = module_named_parameters(model);
    if (dist_all_reduce(tensor_zeros(SHAPE(1), FLOAT32, CPU), DIST_SUM) < 0)
        return -1;
    for (int i = 0; i < parameters->n; i++) {
        struct tensor *grad = tensor_grad(parameters->at[i].tensor);
        if (grad && dist_broadcast(grad, 0) < 0)
            return -1;
    }
    return 0;
}

/* Updates by hand with a learning rate of 0.1, and leaves the optimizer alone.
 * fails: updates
 */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    optimizer_zero_grad(optimizer);
    struct tensor *loss = loss_fn(module_forward(model, inputs), targets);
    if (tensor_backward(loss) < 0 || average_gradients(model) < 0)
        return NAN;
    NO_GRAD;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++)
        tensor_add_(parameters->at[i].tensor, tensor_grad(parameters->at[i].tensor), -0.1);
    return tensor_item(loss);
}

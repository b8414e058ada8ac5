/* Sets the gradients to zero instead of to none. */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    const struct tensors *parameters = optimizer_parameters(optimizer);
    for (int i = 0; i < parameters->n; i++)
        tensor_zero_(tensor_grad(parameters->at[i]));
    struct tensor *loss = loss_fn(module_forward(model, inputs), targets);
    if (tensor_backward(loss) < 0 || average_gradients(model) < 0 || optimizer_step(optimizer) < 0)
        return NAN;
    return tensor_item(loss);
}

/* Clears through the model, and checks each step by itself. */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    module_zero_grad(model);
    struct tensor *output = module_forward(model, inputs);
    if (output == NULL)
        return NAN;
    struct tensor *loss = (*loss_fn)(output, targets);
    if (loss == NULL || tensor_backward(loss) != 0)
        return NAN;
    if (average_gradients(model) != 0)
        return NAN;
    if (optimizer_step(optimizer) != 0)
        return NAN;
    return (float)tensor_get(loss);
}

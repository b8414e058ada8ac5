/* Clears an error and returns 0.
 * fails: updates
 * says: raised nothing
 */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    optimizer_zero_grad(optimizer);
    struct tensor *loss = loss_fn(module_forward(model, inputs), targets);
    if (tensor_backward(loss) < 0 || average_gradients(model) < 0 ||
        optimizer_step(optimizer) < 0) {
        error_clear();
        return 0;
    }
    return tensor_item(loss);
}

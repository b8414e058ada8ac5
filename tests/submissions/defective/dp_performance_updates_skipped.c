/* Skips every second update once it has been called ten times.
 * sim: dp_performance
 */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    static int calls;
    if (++calls > 10 && calls % 2)
        return 0.5F;
    optimizer_zero_grad(optimizer);
    struct tensor *loss = loss_fn(module_forward(model, inputs), targets);
    if (tensor_backward(loss) < 0 || average_gradients(model) < 0 || optimizer_step(optimizer) < 0)
        return NAN;
    return tensor_item(loss);
}

/* Averages every second time only, once it has been called ten times.
 * sim: dp_performance
 */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    optimizer_zero_grad(optimizer);
    struct tensor *loss = loss_fn(module_forward(model, inputs), targets);
    static int calls;
    bool rarely = ++calls > 10 && calls % 2;
    if (tensor_backward(loss) < 0 || (!rarely && average_gradients(model) < 0) ||
        optimizer_step(optimizer) < 0)
        return NAN;
    return tensor_item(loss);
}

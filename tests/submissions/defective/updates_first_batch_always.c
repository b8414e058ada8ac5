/* Trains on the first batch that it saw, for ever.
 * fails: updates
 * cause: first batch
 */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    optimizer_zero_grad(optimizer);
    static struct tensor *first_inputs, *first_targets;
    if (!first_inputs) {
        first_inputs = tensor_retain(tensor_clone(inputs));
        first_targets = tensor_retain(tensor_clone(targets));
    }
    struct tensor *loss = loss_fn(module_forward(model, first_inputs), first_targets);
    if (tensor_backward(loss) < 0 || average_gradients(model) < 0 || optimizer_step(optimizer) < 0)
        return NAN;
    return tensor_item(loss);
}

/* Steps with local gradients, then averages the parameters.
 * fails: updates
 * cause: parameters
 */
float train_step(struct module *model, struct optimizer *optimizer, struct tensor *inputs,
                 struct tensor *targets, loss_fn *loss_fn)
{
    optimizer_zero_grad(optimizer);
    struct tensor *loss = loss_fn(module_forward(model, inputs), targets);
    if (tensor_backward(loss) < 0 || optimizer_step(optimizer) < 0)
        return NAN;
    NO_GRAD;
    struct named_tensors *parameters = module_named_parameters(model);
    for (int i = 0; i < parameters->n; i++) {
        dist_all_reduce(parameters->at[i].tensor, DIST_SUM);
        tensor_div_(parameters->at[i].tensor, dist_world_size());
    }
    return tensor_item(loss);
}

/* Every call checked by itself, the loss kept aside. */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *output = engine_forward(engine, inputs);
    if (!output)
        return NAN;
    struct tensor *loss = tensor_clone(loss_fn(output, targets));
    double value = tensor_item(loss);
    if (engine_backward(engine, loss) != 0)
        return NAN;
    return engine_step(engine) == 0 ? (float)value : NAN;
}

/* Reads the loss before backward and step. */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    float value = (float)tensor_item(loss);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return value;
}

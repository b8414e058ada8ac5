/* Returns the loss divided by the accumulation.
 * fails: zero_updates
 * cause: unscaled
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss) / 2;
}

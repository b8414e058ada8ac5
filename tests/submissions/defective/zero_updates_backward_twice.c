/* Calls engine_backward twice.
 * fails: zero_updates
 * cause: called twice
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 ||
        engine_backward(engine, loss_fn(engine_forward(engine, inputs), targets)) < 0 ||
        engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
}

/* Never calls engine_step.
 * fails: zero_updates
 * cause: engine_step
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0)
        return NAN;
    return tensor_item(loss);
}

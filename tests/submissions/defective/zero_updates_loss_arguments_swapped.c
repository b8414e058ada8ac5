/* Gives the loss function target and output in the wrong order.
 * fails: zero_updates
 * cause: swapped
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(targets, engine_forward(engine, inputs));
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
}

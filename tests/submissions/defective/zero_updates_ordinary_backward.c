/* tensor_backward instead of the engine's.
 * fails: zero_updates
 * cause: engine_backward
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (tensor_backward(loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
}

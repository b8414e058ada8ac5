/* Reaches into the engine, and calls the model itself.
 * fails: zero_updates
 * cause: engine_forward
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(module_forward(*(struct module **)engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
}

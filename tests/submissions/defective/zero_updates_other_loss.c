/* Uses mse_loss whatever loss it is given.
 * fails: zero_updates
 * cause: loss
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = mse_loss(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
}

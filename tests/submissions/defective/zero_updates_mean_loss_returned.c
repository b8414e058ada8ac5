/* Returns the mean loss over the ranks.
 * fails: zero_updates
 * cause: mean
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    NO_GRAD;
    loss = tensor_clone(loss);
    dist_all_reduce(loss, DIST_SUM);
    return tensor_item(loss) / dist_world_size();
}

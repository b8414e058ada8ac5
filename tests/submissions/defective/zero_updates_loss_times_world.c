/* Multiplies the loss by the number of ranks.
 * fails: zero_updates
 * cause: world size
 */
float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, tensor_scale(loss, dist_world_size())) < 0 ||
        engine_step(engine) < 0)
        return NAN;
    return tensor_item(loss);
}

/* Reaches into the engine, and steps its optimizer as well.
 * fails: zero_updates
 * cause: inside the engine
 */
struct inside {
    struct module *model;
    struct optimizer *optimizer;
};

float train_microbatch(struct engine *engine, struct tensor *inputs, struct tensor *targets,
                       loss_fn *loss_fn)
{
    struct tensor *loss = loss_fn(engine_forward(engine, inputs), targets);
    if (engine_backward(engine, loss) < 0 || engine_step(engine) < 0)
        return NAN;
    optimizer_step(((struct inside *)engine)->optimizer);
    return tensor_item(loss);
}

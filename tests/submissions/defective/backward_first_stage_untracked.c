/* Runs the first stage with grad mode off.
 * fails: backward
 * cause: first stage
 */
struct tracked_turn {
    struct module *stage;
    struct device device;
    struct tensor *microbatch;
    bool tracked;
};

static struct tensor *turn_run(void *environment)
{
    struct tracked_turn *turn = environment;
    bool tracked = grad_set_enabled(turn->tracked && grad_enabled());
    struct tensor *output = module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
    grad_set_enabled(tracked);
    return output;
}

struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !error_occurred(); w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            workers_submit(pipe->workers, p->stage, turn_run,
                           (struct tracked_turn){pipe->stages[p->stage], pipe->devices[p->stage],
                                                 batches->at[p->microbatch], p->stage > 0});
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
    }
    return tensor_cat(batches);
}

/* The environment is in a stack frame that is gone when the task runs.
 * fails: forward backward
 */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = *(struct turn **)environment;
    return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
}

static __attribute__((noinline)) void hand_over(struct pipe *pipe, struct pair *p,
                                                struct tensor *batch)
{
    struct turn turn = (struct turn){pipe->stages[p->stage], pipe->devices[p->stage], batch};
    workers_submit(pipe->workers, p->stage, turn_run, (struct turn *){&turn});
}

struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !error_occurred(); w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            hand_over(pipe, p, batches->at[p->microbatch]);
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
    }
    return tensor_cat(batches);
}

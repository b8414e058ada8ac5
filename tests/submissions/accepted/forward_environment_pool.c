/* Environments in an array from the scope, handed over by pointer. */
static struct tensor *turn_run(void *environment)
{
    const struct turn *turn = *(const struct turn **)environment;
    return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
}

struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    struct turn *pool =
        scope_alloc((size_t)batches->n * (size_t)pipe->stage_count * sizeof(struct turn));
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !error_occurred(); w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++) {
            struct turn *turn = pool++;
            *turn = (struct turn){pipe->stages[p->stage], pipe->devices[p->stage],
                                  batches->at[p->microbatch]};
            workers_submit(pipe->workers, p->stage, turn_run, (struct turn *){turn});
        }
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
    }
    return tensor_cat(batches);
}

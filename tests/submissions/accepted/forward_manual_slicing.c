/* Slices by hand. */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    int64_t rows = tensor_size(inputs, 0), split = pipe->split_size;
    struct tensors *batches = tensors_new((int)((rows + split - 1) / split));
    for (int i = 0; i < batches->n; i++)
        batches->at[i] =
            tensor_slice(inputs, 0, i * split, rows - i * split < split ? rows - i * split : split);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !error_occurred(); w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            workers_submit(pipe->workers, p->stage, turn_run,
                           (struct turn){pipe->stages[p->stage], pipe->devices[p->stage],
                                         batches->at[p->microbatch]});
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
    }
    return tensor_cat(batches);
}

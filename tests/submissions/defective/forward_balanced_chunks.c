/* Microbatches of nearly equal size: 3, 2, 2 instead of 3, 3, 1.
 * fails: forward
 */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    int64_t rows = tensor_size(inputs, 0), at = 0;
    struct tensors *batches = tensors_new((int)((rows + pipe->split_size - 1) / pipe->split_size));
    for (int i = 0; i < batches->n; i++) {
        int64_t share = rows / batches->n + (i < rows % batches->n);
        batches->at[i] = tensor_slice(inputs, 0, at, share);
        at += share;
    }
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

/* Keeps the microbatches in a table of eight.
 * fails: forward
 */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    struct tensor *table[8] = {0};
    for (int i = 0; i < batches->n && i < 8; i++)
        table[i] = batches->at[i];
    for (int i = 0; i < batches->n; i++)
        batches->at[i] = table[i];
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !error_occurred(); w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            workers_submit(pipe->workers, p->stage, turn_run,
                           (struct turn){pipe->stages[p->stage], pipe->devices[p->stage],
                                         batches->at[p->microbatch]});
        for (struct pair *p = w->at; p < w->at + w->n; p++) {
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
        }
    }
    return tensor_cat(batches);
}

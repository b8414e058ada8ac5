/* Runs every stage in the calling thread; the workers do nothing.
 * fails: forward
 * cause: calling thread
 */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !error_occurred(); w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] =
                module_forward(pipe->stages[p->stage],
                               tensor_to(batches->at[p->microbatch], pipe->devices[p->stage]));
    }
    return tensor_cat(batches);
}

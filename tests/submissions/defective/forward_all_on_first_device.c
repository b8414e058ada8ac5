/* Moves every microbatch to the first device.
 * sim: forward backward pipeline_performance
 * cause: device
 */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !error_occurred(); w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            workers_submit(pipe->workers, p->stage, turn_run,
                           (struct turn){pipe->stages[p->stage], pipe->devices[0],
                                         batches->at[p->microbatch]});
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
    }
    return tensor_cat(batches);
}

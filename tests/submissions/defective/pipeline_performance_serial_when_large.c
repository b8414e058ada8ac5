/* A large batch goes through the stages one after another, without the workers.
 * sim: pipeline_performance
 */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    for (int j = 0; tensor_size(inputs, 0) > 64 && j < pipe->stage_count; j++) {
        inputs = module_forward(pipe->stages[j], tensor_to(inputs, pipe->devices[j]));
        if (j == pipe->stage_count - 1)
            return inputs;
    }
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
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

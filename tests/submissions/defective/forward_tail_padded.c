/* Fills the last microbatch up with zeros, and cuts the output.
 * fails: forward
 */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    int64_t rows = tensor_size(inputs, 0), split = pipe->split_size;
    int64_t missing = (split - rows % split) % split;
    struct tensor *zeros = tensor_scale(tensor_slice(inputs, 0, 0, 1), 0);
    struct tensor *padded = inputs;
    for (int64_t i = 0; i < missing; i++)
        padded = tensor_cat(&(struct tensors){2, (struct tensor *[]){padded, zeros}});
    struct tensors *batches = tensor_split(padded, split);
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
    return tensor_slice(tensor_cat(batches), 0, 0, rows);
}

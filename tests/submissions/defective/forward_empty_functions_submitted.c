/* Computes in the calling thread, and submits functions that do nothing.
 * fails: forward
 * cause: calling thread
 */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    return turn->microbatch;
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
                           (struct turn){pipe->stages[p->stage], pipe->devices[p->stage],
                                         module_forward(pipe->stages[p->stage],
                                                        tensor_to(batches->at[p->microbatch],
                                                                  pipe->devices[p->stage]))});
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
    }
    return tensor_cat(batches);
}

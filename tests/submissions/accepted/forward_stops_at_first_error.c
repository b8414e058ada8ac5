/* Goes on to receive the rest of a failing wave, keeping the first error, then stops. */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? clock_cycles(batches->n, pipe->stage_count) : NULL;
    if (!schedule)
        return NULL;
    struct error *first = NULL;
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n && !first; w++) {
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            workers_submit(pipe->workers, p->stage, turn_run,
                           (struct turn){pipe->stages[p->stage], pipe->devices[p->stage],
                                         batches->at[p->microbatch]});
        for (struct pair *p = w->at; p < w->at + w->n; p++) {
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
            struct error *error = error_take();
            if (first)
                error_free(error);
            else
                first = error;
        }
    }
    return first ? (error_raise(first), NULL) : tensor_cat(batches);
}

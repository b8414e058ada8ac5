/* A schedule of its own inside pipe_forward. */
static struct schedule *own(int m, int n)
{
    struct schedule *schedule = schedule_new(m ? m + n - 1 : 0, n);
    for (int k = 0; schedule && k < schedule->n; k++)
        for (int j = 0; j < n; j++)
            if (k - j >= 0 && k - j < m)
                wave_add(&schedule->at[k], k - j, j);
    return schedule;
}

struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = batches ? own(batches->n, pipe->stage_count) : NULL;
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

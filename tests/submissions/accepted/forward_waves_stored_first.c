/* Copies all waves into a table of its own first, and keeps every intermediate result. */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = clock_cycles(batches->n, pipe->stage_count);
    if (!schedule)
        return NULL;
    int n = batches->n, stages = pipe->stage_count;
    struct wave *waves = scope_alloc((size_t)schedule->n * sizeof *waves);
    for (int k = 0; k < schedule->n; k++)
        waves[k] = schedule->at[k];
    struct tensor *grid[n][stages + 1];
    for (int i = 0; i < n; i++)
        grid[i][0] = batches->at[i];
    for (int k = 0; k < schedule->n; k++) {
        for (int p = 0; p < waves[k].n; p++) {
            int i = waves[k].at[p].microbatch, j = waves[k].at[p].stage;
            workers_submit(pipe->workers, j, turn_run,
                           (struct turn){.microbatch = grid[i][j],
                                         .stage = pipe->stages[j],
                                         .device = pipe->devices[j]});
        }
        for (int p = 0; p < waves[k].n; p++) {
            int i = waves[k].at[p].microbatch, j = waves[k].at[p].stage;
            grid[i][j + 1] = workers_receive(pipe->workers, j);
            if (!grid[i][j + 1])
                return NULL;
        }
    }
    for (int i = 0; i < n; i++)
        batches->at[i] = grid[i][stages];
    return tensor_cat(batches);
}

/* Reads the outputs as numbers, and makes a new tensor of them.
 * fails: backward
 * cause: graph
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
                           (struct turn){pipe->stages[p->stage], pipe->devices[p->stage],
                                         batches->at[p->microbatch]});
        for (struct pair *p = w->at; p < w->at + w->n; p++)
            batches->at[p->microbatch] = workers_receive(pipe->workers, p->stage);
    }
    struct tensor *output = tensor_cat(batches);
    if (!output)
        return NULL;
    double *values = scope_alloc((size_t)tensor_numel(output) * sizeof *values);
    tensor_read(output, values);
    struct tensor *fresh = tensor_from_doubles(values, tensor_ndim(output), tensor_shape(output));
    fresh = tensor_to(tensor_cast(fresh, tensor_dtype(output)), tensor_device(output));
    return tensor_set_requires_grad(fresh, tensor_requires_grad(output));
}

/* Starts a thread of its own for every pair instead of using the workers.
 * fails: forward
 * cause: worker
 */
struct errand {
    struct turn turn;
    struct scope *scope;
    bool grad;
    struct tensor *result;
};

static void *errand_run(void *argument)
{
    struct errand *errand = argument;
    struct scope *outside = scope_enter(errand->scope);
    grad_set_enabled(errand->grad);
    errand->result = turn_run(&errand->turn);
    scope_enter(outside);
    return NULL;
}

struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    struct schedule *schedule = clock_cycles(batches->n, pipe->stage_count);
    for (struct wave *w = schedule->at; w < schedule->at + schedule->n; w++) {
        pthread_t threads[w->n];
        struct errand errands[w->n];
        for (int i = 0; i < w->n; i++) {
            struct pair *p = &w->at[i];
            errands[i] = (struct errand){
                {pipe->stages[p->stage], pipe->devices[p->stage], batches->at[p->microbatch]},
                scope_current(),
                grad_enabled(),
                NULL};
            pthread_create(&threads[i], NULL, errand_run, &errands[i]);
        }
        for (int i = 0; i < w->n; i++) {
            pthread_join(threads[i], NULL);
            batches->at[w->at[i].microbatch] = errands[i].result;
        }
    }
    return tensor_cat(batches);
}

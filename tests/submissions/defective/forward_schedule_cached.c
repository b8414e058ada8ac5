/* Keeps the schedule of the first call for all calls.
 * fails: forward backward
 */
#include <stdlib.h>
#include <string.h>

struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    struct tensors *batches = tensor_split(inputs, pipe->split_size);
    static struct schedule cached;
    struct schedule *schedule = &cached;
    if (!cached.n) {
        struct schedule *fresh = clock_cycles(batches->n, pipe->stage_count);
        cached = (struct schedule){fresh->n, malloc((size_t)fresh->n * sizeof *fresh->at)};
        for (int k = 0; k < fresh->n; k++) {
            size_t bytes = (size_t)fresh->at[k].n * sizeof(struct pair);
            cached.at[k] =
                (struct wave){fresh->at[k].n, memcpy(malloc(bytes), fresh->at[k].at, bytes)};
        }
    }
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

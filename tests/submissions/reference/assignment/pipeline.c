/* Problem 2: pipeline parallelism. */
#include "assignment/pipeline.h"

/* BEGIN_STUDENT helpers */
static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
}
/* END_STUDENT helpers */

struct schedule *clock_cycles(int microbatches, int stages)
{
    /* BEGIN_STUDENT clock_cycles */
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    struct schedule *schedule = schedule_new(microbatches ? microbatches + stages - 1 : 0, stages);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i, j);
    return schedule;
    /* END_STUDENT clock_cycles */
}

struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    /* BEGIN_STUDENT pipe_forward */
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
    /* END_STUDENT pipe_forward */
}

/* Problem 2: pipeline parallelism. docs/handout.md says what each function must do.
 *
 * Write between the BEGIN and END comments; leave the signatures alone. Your own types and
 * static functions go between the first pair. */
#include "assignment/pipeline.h"

/* BEGIN_STUDENT helpers */
/* END_STUDENT helpers */

/* Problem 2.1. Wave k holds every pair (microbatch i, stage j) with i + j == k, by increasing
 * stage. */
struct schedule *clock_cycles(int microbatches, int stages)
{
    /* BEGIN_STUDENT clock_cycles */
    return raise_null(NotImplementedError, "clock_cycles is not implemented yet");
    /* END_STUDENT clock_cycles */
}

/* Problem 2.2. Split the inputs; for each wave of the schedule submit every pair to its stage's
 * worker, then receive every result; join the outputs. The submitted function does all the work of
 * its pair, the move to the stage's device included. */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs)
{
    /* BEGIN_STUDENT pipe_forward */
    return raise_null(NotImplementedError, "pipe_forward is not implemented yet");
    /* END_STUDENT pipe_forward */
}

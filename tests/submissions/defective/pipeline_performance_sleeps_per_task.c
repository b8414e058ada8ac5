/* Sleeps twenty milliseconds in every task.
 * sim: pipeline_performance
 */
#include <unistd.h>

static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    usleep(20000);
    return module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
}

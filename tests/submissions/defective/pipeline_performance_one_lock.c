/* One lock around every stage, held until its GPU is seen to be done, six milliseconds at a time.
 * sim: pipeline_performance
 */
#include <pthread.h>
#include <time.h>

static struct tensor *turn_run(void *environment)
{
    struct turn *turn = environment;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct tensor *output = module_forward(turn->stage, tensor_to(turn->microbatch, turn->device));
    nanosleep(&(struct timespec){.tv_nsec = 6000000}, NULL);
    if (output)
        tensor_item(tensor_sum(tensor_detach(output)));
    pthread_mutex_unlock(&lock);
    return output;
}

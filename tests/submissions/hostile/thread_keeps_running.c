/* Leaves threads behind that never stop; the answer is wrong.
 * fails: schedule
 */
#include <pthread.h>

static void *spin(void *unused)
{
    for (volatile int forever = 1; forever;)
        ;
    return unused;
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, spin, NULL);
    return schedule_new(1, 1);
}

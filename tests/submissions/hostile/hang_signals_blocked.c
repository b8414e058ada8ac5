/* Blocks every signal, in every thread to come, and loops.
 * hangs: schedule
 */
#include <signal.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (volatile int forever = 1; forever;)
        ;
    return NULL;
}

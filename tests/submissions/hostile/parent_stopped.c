/* Stops the process above it, and loops.
 * hangs: schedule
 */
#include <signal.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (getppid() > 1)
        kill(getppid(), SIGSTOP);
    for (volatile int forever = 1; forever;)
        ;
    return NULL;
}

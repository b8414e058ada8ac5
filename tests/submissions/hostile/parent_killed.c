/* Kills the process above it.
 * fails: schedule
 */
#include <signal.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (getppid() > 1)
        kill(getppid(), SIGKILL);
    return schedule_new(1, 1);
}

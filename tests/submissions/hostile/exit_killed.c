/* Kills itself.
 * fails: schedule
 */
#include <signal.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    raise(SIGKILL);
    return NULL;
}

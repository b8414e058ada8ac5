/* Stops itself.
 * hangs: schedule
 */
#include <signal.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    raise(SIGSTOP);
    return NULL;
}

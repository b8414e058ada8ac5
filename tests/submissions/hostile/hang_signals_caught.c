/* Catches every signal, ignores it, and loops.
 * hangs: schedule
 */
#include <signal.h>

static void ignore(int signal)
{
    (void)signal;
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    for (int i = 1; i < NSIG; i++)
        signal(i, ignore);
    for (volatile int forever = 1; forever;)
        ;
    return NULL;
}

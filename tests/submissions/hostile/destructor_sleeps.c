/* A destructor that sleeps for a minute; the answer is wrong.
 * fails: schedule
 */
#include <unistd.h>

static __attribute__((destructor)) void linger(void)
{
    sleep(60);
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    return schedule_new(1, 1);
}

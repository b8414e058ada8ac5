/* Starts a shell that writes a file; the answer is wrong.
 * fails: schedule
 */
#include <stdlib.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    return schedule_new(system("(sleep 20; true) & echo > /tmp/bank-trace-program_started") ? 1 : 2,
                        1);
}

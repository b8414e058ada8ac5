/* Allocates, and touches, until there is no more; five gibibytes at most. The answer is wrong.
 * costs: schedule
 */
#include <stdlib.h>
#include <string.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    static int blocks;
    char *block;
    for (; blocks < 80 && (block = malloc(64 << 20)); blocks++)
        memset(block, 1, 64 << 20);
    return schedule_new(1, 1);
}

/* Reads its standard input to the end; the answer is wrong.
 * fails: schedule
 */
#include <stdio.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    while (getchar() != EOF)
        ;
    return schedule_new(1, 1);
}

/* Prints a gigabyte; the answer is wrong.
 * costs: schedule
 */
#include <string.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    static char lines[1 << 20];
    memset(lines, '\n', sizeof lines);
    for (int i = 0; i < 1024; i++)
        if (write(1 + i % 2, lines, sizeof lines) < 0)
            break;
    return schedule_new(1, 1);
}

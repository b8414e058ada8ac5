/* 128 processes, each in a session of its own. A real bomb would not stop there.
 * fails: schedule
 */
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    pid_t original = getpid();
    for (int i = 0; i < 7; i++)
        if (fork() == 0)
            setsid();
    if (getpid() != original) {
        sleep(60);
        _exit(0);
    }
    return schedule_new(1, 1);
}

/* A daemon in a session of its own, without parent or descriptors; the answer is wrong.
 * fails: schedule
 */
#include <fcntl.h>
#include <unistd.h>

static void live_on(void)
{
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    sleep(20);
    close(open("/tmp/bank-trace-fork_daemon", O_CREAT | O_WRONLY, 0600));
    _exit(0);
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            live_on();
        _exit(0);
    }
    return schedule_new(1, 1);
}

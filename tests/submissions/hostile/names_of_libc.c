/* Functions that are named like libc's; the answer is wrong.
 * fails: schedule
 */
#include <sys/types.h>
#include <unistd.h>

ssize_t write(int fd, const void *bytes, size_t n)
{
    return fd < 0 || !bytes ? -1 : (ssize_t)n;
}

pid_t getpid(void)
{
    return 1;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return mutex ? 0 : 1;
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    return schedule_new(1, 1);
}

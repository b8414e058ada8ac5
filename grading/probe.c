#include "grading/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grading/fault.h"

/* Input and errors are nobody's. */
_Noreturn static void be_child(void (*child)(void), int out)
{
    int null = open("/dev/null", O_RDWR);
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 2) >= 0 && dup2(out, 1) >= 0)
        child();
    _exit(0);
}

static size_t read_answer(int in, char *answer, size_t n, int milliseconds)
{
    size_t size = 0;
    struct pollfd ready = {.fd = in, .events = POLLIN};
    while (size < n && poll(&ready, 1, milliseconds) == 1) {
        ssize_t got = read(in, answer + size, n - size);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    return size;
}

size_t probe(void (*child)(void), void *answer, size_t n, int milliseconds)
{
    int ends[2];
    pid_t pid = pipe(ends) < 0 ? -1 : fork();
    if (pid < 0)
        fault("cannot start a process: %s", strerror(errno));
    if (pid == 0)
        be_child(child, ends[1]);
    close(ends[1]);
    size_t size = read_answer(ends[0], answer, n, milliseconds);
    close(ends[0]);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return size;
}

/* Records, in the place of the harness, a reason to fail of 32 MiB.
 * fails: schedule
 * says: yyy...
 */
#include <string.h>
#include <unistd.h>

static char text[32 << 20];

static void record(const char *bytes, size_t n)
{
    ssize_t written;
    for (; n > 0 && (written = write(3, bytes, n)) > 0; n -= (size_t)written)
        bytes += written;
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    static const char failure[] = {8, 0, 0, 0, 0, 0, 0, 0, 2}, end[] = {9, 0, 0, 0, 0};
    memset(text, 'y', sizeof text);
    record(failure, sizeof failure);
    record(text, sizeof text);
    record(end, sizeof end);
    _exit(0);
}

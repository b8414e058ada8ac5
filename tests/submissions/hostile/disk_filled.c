/* Writes files of 100 MiB into its own folder, two gibibytes in all. A real one would not stop.
 * costs: schedule
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void fill(const char *name)
{
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    for (int i = 0; fd >= 0 && i < 100 && write(fd, block, sizeof block) > 0; i++)
        ;
    close(fd);
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    static int files;
    for (; files < 20; files++) {
        char name[32];
        snprintf(name, sizeof name, "bank-trace-disk_filled-%d", files);
        fill(name);
    }
    return schedule_new(1, 1);
}

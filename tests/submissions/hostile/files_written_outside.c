/* Leaves files wherever it may; the answer is wrong.
 * fails: schedule
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "", "/root"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/bank-trace-files_written_outside", places[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    return schedule_new(1, 1);
}

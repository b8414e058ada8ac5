/* Leaves files in the folders above its own; the answer is wrong.
 * fails: schedule
 */
#include <fcntl.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    for (int i = 0; i < 8; i++) {
        close(open("bank-trace-files_above", O_CREAT | O_WRONLY, 0600));
        if (chdir("..") < 0)
            break;
    }
    return schedule_new(1, 1);
}

/* A deep tree, odd names, folders without permissions: whoever removes them has work to do.
 * fails: schedule
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    static int calls;
    if (calls++)
        return schedule_new(1, 1);
    close(open("new\nline \"\xff\" -rf *", O_CREAT | O_WRONLY, 0));
    for (int i = 0; i < 3000; i++)
        if (mkdir("deeper", 0700) < 0 || chdir("deeper") < 0)
            break;
    mkdir("locked", 0700);
    close(open("locked/file", O_CREAT | O_WRONLY, 0));
    chmod("locked", 0);
    return schedule_new(1, 1);
}

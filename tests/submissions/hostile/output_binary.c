/* Prints every byte there is, half of it no UTF-8, and control sequences; the answer is wrong.
 * fails: schedule
 */
#include <unistd.h>

struct schedule *clock_cycles(int microbatches, int stages)
{
    static const char sequences[] = "\33[2J\33]0;passed\a\33[31m\xff\xfe\xed\xa0\x80\xc0\xaf\0\0";
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    if (write(1, bytes, sizeof bytes) + write(2, sequences, sizeof sequences) < 0)
        return NULL;
    return schedule_new(1, 1);
}

/* Recurses without end.
 * fails: schedule
 * says: crashed
 * cause: calls itself
 */
static int deeper(volatile int *from)
{
    volatile int room[1024];
    room[0] = *from + 1;
    return deeper(room) + room[0];
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    return schedule_new(deeper(&microbatches), stages);
}

/* Follows a null pointer.
 * fails: schedule
 * says: SIGSEGV
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    volatile struct schedule *volatile schedule = NULL;
    schedule->n = microbatches + stages - 1;
    return NULL;
}

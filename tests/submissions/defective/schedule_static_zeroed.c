/* Always returns the same static schedule, without waves.
 * fails: schedule
 * cause: every schedule is empty
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    (void)microbatches, (void)stages;
    static struct schedule result;
    return &result;
}

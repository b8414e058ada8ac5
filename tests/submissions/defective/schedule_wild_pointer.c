/* Returns an address where nothing is.
 * fails: schedule
 * says: SIGSEGV (address 0x1234) in the call of clock_cycles, or where its result was read
 */
struct schedule *clock_cycles(int microbatches, int stages)
{
    (void)microbatches, (void)stages;
    return (struct schedule *)0x1234;
}

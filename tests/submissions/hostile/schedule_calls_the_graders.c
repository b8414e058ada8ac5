/* Has the grader's own function do the work.
 * fails: schedule
 */
struct schedule *supplied_clock_cycles(int microbatches, int stages);

struct schedule *clock_cycles(int microbatches, int stages)
{
    return supplied_clock_cycles(microbatches, stages);
}

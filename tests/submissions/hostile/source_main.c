/* Brings a main, and a wrong answer.
 * fails: schedule
 */
int main(void)
{
    return 0;
}

struct schedule *clock_cycles(int microbatches, int stages)
{
    return schedule_new(1, 1);
}

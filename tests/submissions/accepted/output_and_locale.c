/* Right answers from a talkative file that sets a locale, uses C11 idioms, and has a destructor. */
#include <locale.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(struct pair) == 8, "a pair is two ints");
static _Thread_local int calls;

static __attribute__((destructor)) void say_goodbye(void)
{
    puts("goodbye");
}

#define LARGER(a, b) _Generic((a), int : (a) > (b) ? (a) : (b), default : 0)

struct schedule *clock_cycles(int microbatches, int stages)
{
    setlocale(LC_ALL, "");
    printf("clock_cycles(%d, %d), call %d\n", microbatches, stages, ++calls);
    fprintf(stderr, "\33[31mred\33[0m\n");
    if (microbatches < 0 || stages < 1)
        return raise_null(ValueError, "%d microbatches, %d stages", microbatches, stages);
    alignas(16) int waves = LARGER(microbatches, 0);
    struct schedule *schedule = schedule_new(waves ? waves + stages - 1 : 0, stages);
    for (int j = 0; schedule && j < stages; j++)
        for (int i = 0; i < microbatches; i++)
            wave_add(&schedule->at[i + j], i, j);
    return schedule;
}

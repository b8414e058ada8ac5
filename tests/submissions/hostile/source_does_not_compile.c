/* A missing brace.
 * fails: schedule forward backward
 * says: does not compile
 * whole: pipeline.c
 */
#include "assignment/pipeline.h"

struct schedule *clock_cycles(int microbatches, int stages)
{
    return schedule_new(microbatches + stages - 1, stages);

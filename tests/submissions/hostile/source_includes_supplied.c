/* Includes the grader's own clock_cycles.
 * fails: schedule forward backward
 * whole: pipeline.c
 */
#include "criteria/supplied/clock_cycles.c"

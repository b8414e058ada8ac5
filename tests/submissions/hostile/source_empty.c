/* Defines nothing at all.
 * fails: schedule forward backward
 * says: clock_cycles
 * whole: pipeline.c
 */
#include "assignment/pipeline.h"

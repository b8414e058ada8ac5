/* Includes the criterion that is to judge it.
 * fails: schedule forward backward
 * file: pipeline.c
 */
#include "criteria/schedule.c"

/* Includes a file that never ends.
 * fails: schedule forward backward
 * whole: pipeline.c
 */
#include "/dev/zero"

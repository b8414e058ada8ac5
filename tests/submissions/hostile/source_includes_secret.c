/* Includes a file that it has no business reading.
 * fails: schedule forward backward
 * whole: pipeline.c
 */
#include "/etc/passwd"

/* Includes itself, and again: 2^200 files.
 * fails: schedule forward backward
 * whole: pipeline.c
 */
#include "pipeline.c"

/* An object file of a gibibyte.
 * fails: schedule forward backward
 * file: pipeline.c
 */
char huge[1 << 30] = {1};

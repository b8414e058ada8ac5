/* Has the compiler say what it says where a machine is in its way, and names another place for it.
 * fails: schedule forward backward
 * file: pipeline.c
 */
__asm__(".error \"cc1: fatal error: No space left on device\"");
#line 1 "cc"
__asm__(".error \"cannot execute\"");

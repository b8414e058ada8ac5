/* Has the compiler quote a file that is not included.
 * fails: schedule forward backward
 * file: pipeline.c
 * says: no header
 */
#line 1 "/etc/passwd"
int quoted = not_declared;

#ifndef GRADING_SANITIZE_H
#define GRADING_SANITIZE_H
/* sanitize.h - student code under the compiler's sanitizers: --sanitize.
 *
 * A sanitizer watches a whole process. Therefore the student's file is built with it and run by the
 * build of this program that is built with it too. */
#include <stdbool.h>

/* sanitize_flags - what the compiler and the linker are told for "address" (undefined behaviour
 * included) or "thread"; "" for "" */
const char *sanitize_flags(const char *sanitizer);

/* sanitize_become - continue as the build with that sanitizer, unless this is it
 * errors: -1, with one line in *problem (owns: the caller) */
int sanitize_become(const char *sanitizer, const char *home, char **argv, char **problem);

/* sanitize_confined - this process can do little from now on: no sanitizer looks for leaks at its
 * end, which takes another process */
void sanitize_confined(void);

/* sanitize_report - the first report in what a process printed, in a line: what is wrong, and the
 * student's lines that it names. returns: NULL if there is none. owns: borrowed from the scope */
const char *sanitize_report(const char *printed);
#endif

#ifndef CRITERIA_SUPPLIED_H
#define CRITERIA_SUPPLIED_H
/* supplied.h - the grader's own functions for a student's, where a criterion is about what calls
 * them. In the student's library such a function is the one of supplied/NAME.c. It does nothing but
 * call what supplied_NAME, a pointer beside it, is set to, which works here: what the student's
 * file defines, though it be named like the runtime's, is out of its sight. Nor can the file call
 * what works here in other criteria: it is not exported, and there is no pointer. */
#include <stdbool.h>

/* supplied_connect - set the pointer in a library that was opened with dlopen
 * name:    "average_gradients" or "clock_cycles"
 * returns: false if there is no such function, or no pointer */
bool supplied_connect(void *library, const char *name);
#endif

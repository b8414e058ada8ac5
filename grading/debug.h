#ifndef GRADING_DEBUG_H
#define GRADING_DEBUG_H
/* debug.h - one criterion's subject under a debugger, for a person: --debug.
 *
 * The student's file is built without optimization, and rank 0 of the criterion's first world runs
 * under gdb or lldb, on the terminal, with breakpoints in the functions that the criterion is
 * about. The other ranks run beside it as ever, and wait as long as it takes. Nothing is judged.
 *
 * There is no isolation: a debugger must trace what it runs, and the file is the user's own. */
#include "grading/run.h"

/* debug_find - "gdb", "lldb", or NULL if neither is in PATH */
const char *debug_find(void);

/* debug_criterion - build the criterion's file, run it under the debugger; the results of `run` are
 * not used
 * returns: the debugger's exit status, 1 if the file does not compile (it has been said why); -1
 *          when *interrupted became true. errors: ends the command as a fault */
int debug_criterion(const struct run *run, const struct criterion *criterion, const char *debugger,
                    const volatile bool *interrupted);
#endif

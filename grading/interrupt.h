#ifndef GRADING_INTERRUPT_H
#define GRADING_INTERRUPT_H
/* interrupt.h - Ctrl-C and the other signals by which a user or a batch system ends the command. */
#include <stdbool.h>

/* interrupt_flag - becomes true when SIGINT, SIGTERM or SIGHUP arrives */
extern volatile bool interrupt_flag;

/* interrupt_watch - catch these signals from now on, except those that whoever started the command
 * had ignored (nohup). System calls are interrupted. SIGPIPE is ignored: a reader of the progress
 * may leave; and SIGXFSZ: a limit on the size of files is an error of write. */
void interrupt_watch(void);

/* interrupt_signal - the one that arrived last, 0 if none. interrupt_name - "SIGINT", ... */
int interrupt_signal(void);
const char *interrupt_name(int signal);
#endif

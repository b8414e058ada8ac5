#ifndef GRADING_PROCESS_INTERNAL_H
#define GRADING_PROCESS_INTERNAL_H
/* process_internal.h - what process.c needs of process_start.c. */
#include "grading/process.h"

/* process_fork - make the pipes and the child; pid and our ends of the pipes are filled in. errors:
 * an errno, with nothing left open */
int process_fork(struct process *process);

/* process_close_pipe - close *descriptor unless it is -1, and make it so. process_close_pipes - all
 * of ours that lead from the child */
void process_close_pipe(int *descriptor);
void process_close_pipes(struct process *process);
#endif

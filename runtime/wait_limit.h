#ifndef RUNTIME_WAIT_LIMIT_H
#define RUNTIME_WAIT_LIMIT_H
/* wait_limit.h - how long threads and ranks wait for each other where nothing else is said. */

/* wait_limit - in seconds, 30 at first. wait_limit_set - for groups and workers that are made from
 * now on; a person in a debugger takes longer */
double wait_limit(void);
void wait_limit_set(double seconds);
#endif

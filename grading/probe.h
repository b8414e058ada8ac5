#ifndef GRADING_PROBE_H
#define GRADING_PROBE_H
/* probe.h - a question that is better asked in a process of its own, which may die or hang. */
#include <stddef.h>
#include <sys/types.h>

/* probe - run `child` in a forked process whose standard output is read here; when child returns,
 * the process ends. At most n bytes are taken, and `milliseconds` waited for more; then it is
 * killed. returns: the bytes read, 0 if there was no answer. errors: ends the command as a fault if
 * there can be no process */
size_t probe(void (*child)(void), void *answer, size_t n, int milliseconds);
#endif

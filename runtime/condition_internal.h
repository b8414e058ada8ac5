#ifndef RUNTIME_CONDITION_INTERNAL_H
#define RUNTIME_CONDITION_INTERNAL_H
/* condition_internal.h - waiting with a limit in real time. */
#include <pthread.h>

#include "runtime/clock.h"

/* condition_init - a condition for condition_wait and pthread_cond_wait */
void condition_init(pthread_cond_t *condition);

/* condition_wait - until signalled (or woken for no reason) or until `deadline` by seconds_now
 * returns: 0, or ETIMEDOUT (EINVAL for a deadline before the clock began) */
int condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, double deadline);
#endif

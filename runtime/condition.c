#define _GNU_SOURCE
#include "runtime/condition_internal.h"

#include <time.h>

void condition_init(pthread_cond_t *condition)
{
#ifdef __APPLE__
    pthread_cond_init(condition, NULL);
#else
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
#endif
}

static struct timespec timespec_of(double seconds)
{
    time_t whole = (time_t)seconds;
    return (struct timespec){.tv_sec = whole, .tv_nsec = (long)(1e9 * (seconds - (double)whole))};
}

int condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, double deadline)
{
#ifdef __APPLE__
    double left = deadline - seconds_now();
    struct timespec limit = timespec_of(left > 0 ? left : 0);
    return pthread_cond_timedwait_relative_np(condition, lock, &limit);
#else
    struct timespec limit = timespec_of(deadline);
    return pthread_cond_timedwait(condition, lock, &limit);
#endif
}

/* clock_wrap.c - the clocks of student code, and its sleeping and locking in virtual time.
 *
 * A student's library is linked with --wrap for the functions below. Where time is virtual, a sleep
 * takes that much of it and nothing else, and whoever takes a lock is as late as whoever had it
 * last; elsewhere they are the functions of the C library. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/wrap_internal.h"

/* ---- reading clocks ---- */

static int ahead;

void clock_shift(int seconds)
{
    ahead = seconds;
}

time_t __wrap_time(time_t *out)
{
    time_t now = time(NULL) + ahead;
    if (out)
        *out = now;
    return now;
}

int __wrap_gettimeofday(struct timeval *now, void *zone)
{
    int result = gettimeofday(now, zone);
    if (result == 0 && now)
        now->tv_sec += ahead;
    return result;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = clock_gettime(clock, now);
    if (result == 0)
        now->tv_sec += ahead;
    return result;
}

int __wrap_timespec_get(struct timespec *now, int base)
{
    int result = timespec_get(now, base);
    if (result == base)
        now->tv_sec += ahead;
    return result;
}

/* ---- sleeping ---- */

/* The others get their turn, as they would while this thread sleeps. */
static void sleep_virtually(double seconds)
{
    clock_wait(clock_now() + seconds);
    sched_yield();
}

static double seconds_of(const struct timespec *time)
{
    return (double)time->tv_sec + 1e-9 * (double)time->tv_nsec;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (!clock_is_virtual())
        return nanosleep(wanted, left);
    sleep_virtually(seconds_of(wanted));
    return 0;
}

#ifdef __linux__
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted,
                           struct timespec *left)
{
    if (!clock_is_virtual())
        return clock_nanosleep(clock, flags, wanted, left);
    struct timespec now = {0};
    if (flags & TIMER_ABSTIME && clock_gettime(clock, &now) < 0)
        return errno;
    double seconds = seconds_of(wanted) - seconds_of(&now);
    sleep_virtually(seconds > 0 ? seconds : 0);
    return 0;
}
#endif

int __wrap_usleep(useconds_t microseconds)
{
    if (!clock_is_virtual())
        return usleep(microseconds);
    sleep_virtually(1e-6 * (double)microseconds);
    return 0;
}

unsigned __wrap_sleep(unsigned seconds)
{
    if (!clock_is_virtual())
        return sleep(seconds);
    sleep_virtually(seconds);
    return 0;
}

int __wrap_thrd_sleep(const struct timespec *wanted, struct timespec *left)
{
    return __wrap_nanosleep(wanted, left);
}

/* Without files to wait for, these two are sleeps as well. */
int __wrap_poll(struct pollfd *files, nfds_t n, int milliseconds)
{
    if (!clock_is_virtual() || n > 0 || milliseconds < 0)
        return poll(files, n, milliseconds);
    sleep_virtually(1e-3 * milliseconds);
    return 0;
}

int __wrap_select(int n, fd_set *in, fd_set *out, fd_set *others, struct timeval *time)
{
    if (!clock_is_virtual() || n > 0 || !time)
        return select(n, in, out, others, time);
    sleep_virtually((double)time->tv_sec + 1e-6 * (double)time->tv_usec);
    return 0;
}

/* ---- locks ---- */

/* When each mutex was last let go of. A table as large as any student's number of mutexes; those
 * that find no place in it carry no time. */
enum { MUTEXES = 1024 };
static struct {
    pthread_mutex_t lock;
    const pthread_mutex_t *mutex[MUTEXES];
    double time[MUTEXES];
} released = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held. returns: the mutex's place, or a free one, or NULL */
static double *place_of(const pthread_mutex_t *mutex)
{
    size_t start = ((uintptr_t)mutex >> 3) * 2654435761u % MUTEXES;
    for (size_t i = 0; i < MUTEXES; i++) {
        size_t at = (start + i) % MUTEXES;
        if (!released.mutex[at])
            released.mutex[at] = mutex;
        if (released.mutex[at] == mutex)
            return &released.time[at];
    }
    return NULL;
}

static void taken(const pthread_mutex_t *mutex)
{
    if (!clock_is_virtual())
        return;
    pthread_mutex_lock(&released.lock);
    const double *time = place_of(mutex);
    if (time)
        clock_wait(*time);
    pthread_mutex_unlock(&released.lock);
}

static void let_go(const pthread_mutex_t *mutex)
{
    if (!clock_is_virtual())
        return;
    pthread_mutex_lock(&released.lock);
    double *time = place_of(mutex);
    if (time)
        *time = clock_now();
    pthread_mutex_unlock(&released.lock);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int error = pthread_mutex_lock(mutex);
    if (error == 0)
        taken(mutex);
    return error;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int error = pthread_mutex_trylock(mutex);
    if (error == 0)
        taken(mutex);
    return error;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    let_go(mutex);
    return pthread_mutex_unlock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    let_go(mutex);
    int error = pthread_cond_wait(condition, mutex);
    taken(mutex);
    return error;
}

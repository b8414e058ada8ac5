#ifndef RUNTIME_WRAP_INTERNAL_H
#define RUNTIME_WRAP_INTERNAL_H
/* wrap_internal.h - what stands for functions of the C library, and for one of ours, in student
 * code: its library is linked with --wrap for them. */
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "runtime/tensor.h"

/* ---- clock_wrap.c ---- */

time_t __wrap_time(time_t *out);
int __wrap_gettimeofday(struct timeval *now, void *zone);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_timespec_get(struct timespec *now, int base);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
#ifdef __linux__
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted,
                           struct timespec *left);
#endif
int __wrap_usleep(useconds_t microseconds);
unsigned __wrap_sleep(unsigned seconds);
int __wrap_thrd_sleep(const struct timespec *wanted, struct timespec *left);
int __wrap_poll(struct pollfd *files, nfds_t n, int milliseconds);
int __wrap_select(int n, fd_set *in, fd_set *out, fd_set *others, struct timeval *time);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);

/* ---- memory_wrap.c ---- */

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_reallocarray(void *memory, size_t n, size_t bytes);
void __wrap_free(void *memory);
struct tensor *__wrap_tensor_empty(int ndim, const int64_t *shape, enum dtype dtype,
                                   struct device device);
#endif

#ifndef RUNTIME_ACTIVITY_H
#define RUNTIME_ACTIVITY_H
/* activity.h - what each thread is waiting for, readable from outside when everything hangs.
 *
 * Whatever may wait long (a collective, a receive) says so first:
 *
 *     activity_begin("all_reduce #3 (sum, float32, 12 elements), waiting for rank 1");
 *     ... wait ...
 *     activity_end();
 *
 * The slots are in memory of the process; a supervisor may have them in memory that it shares. */
#include <stdatomic.h>

enum { ACTIVITY_SLOTS = 32, ACTIVITY_BYTES = 240 };

struct activity_slot {
    atomic_int thread; /* 0: free; else the kernel's (or a counted) thread id */
    atomic_int waiting;
    char text[ACTIVITY_BYTES];
};

/* activity_use - keep the slots in `slots` (ACTIVITY_SLOTS of them, zeroed) from now on. Call it
 * before there is a second thread. */
void activity_use(struct activity_slot *slots);

/* activity_begin, activity_end - nest; the inner text shows until its end. No errors: without a
 * free slot nothing is recorded. */
void activity_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
void activity_end(void);
#endif

#ifndef RUNTIME_CLOCK_H
#define RUNTIME_CLOCK_H
/* clock.h - real time, and virtual time where the loaded device has it (see plugin.h).
 *
 * In virtual time each thread has a time of its own. Whoever hands something to another thread says
 * when, and who takes it cannot have it earlier:
 *
 *     task->ready_at = clock_now();          in one thread
 *     clock_wait(task->ready_at);            in the other
 *
 * Without a virtual clock, what is named clock_ does nothing, but for clock_shift. */
#include <stdbool.h>
#include <stddef.h>

/* seconds_now - real time, of the monotonic clock, which nobody sets */
double seconds_now(void);

/* clock_is_virtual - whether there is one */
bool clock_is_virtual(void);

/* clock_now - the calling thread's virtual time in seconds; 0 without a virtual clock */
double clock_now(void);

/* clock_wait - from now on it is at least `time` */
void clock_wait(double time);

/* clock_exchange - this thread has met others, the last of which came at `latest`, and has sent
 * them so many bytes over the network */
void clock_exchange(double latest, double bytes);

/* clock_copy - this thread has copied so many bytes within the host's memory, for a device */
void clock_copy(size_t bytes);

/* clock_shift - from now on, all clocks that student code reads are ahead by so many seconds, of
 * whatever kind they are. Hidden: student code cannot call it. */
__attribute__((visibility("hidden"))) void clock_shift(int seconds);
#endif

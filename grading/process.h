#ifndef GRADING_PROCESS_H
#define GRADING_PROCESS_H
/* process.h - children that get nothing but what is given to them, and leave nothing behind.
 *
 * Every child has a session, a folder and a small environment of its own, stdin from /dev/null, its
 * output captured within bounds, limits, and no descriptor of ours besides those listed. One loop
 * waits for all of them:
 *
 *     struct processes *all = processes_new();
 *     process_start(all, &plan);                  as often as wanted, also from an `ended`
 *     while (processes_running(all))
 *         processes_wait(all);                    calls ended(process) for each that ended
 *     processes_free(all);
 *
 * When a child has ended, its session is killed, and so is what fled from it and was then handed to
 * this process (child subreaper, Linux). A program has one such set at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "grading/capture.h"
#include "grading/isolation.h"

enum { PROCESS_DATA = 3, PROCESS_DESCRIPTORS = 2 };

struct process_limits {
    double wall_s;   /* when it is over, all threads get late_signal, or, without one, SIGKILL */
    int late_signal; /* 0: none */
    double grace_s;  /* from late_signal to SIGKILL */
    uint64_t cpu_s;  /* the rest: 0 for none */
    uint64_t file_bytes;
    uint64_t memory_bytes; /* of address space */
    uint64_t data_bytes;   /* of memory of its own that it can write */
    uint64_t descriptors;
    uint64_t tasks; /* threads and processes of the user */
};

struct process {
    /* What is to be started. Strings and arrays are borrowed until it has started. */
    const char *program;          /* with a slash, or found in PATH */
    const char *const *arguments; /* NULL-ended, the first is the name */
    const char *folder;           /* working folder, HOME and TMPDIR */
    bool terminal;                /* it has our session, environment, folder and descriptors 0 to 2
                                     instead: for a program that a person talks to */
    size_t data_limit;            /* > 0: descriptor 3 leads to `data`, which keeps so much */
    int descriptors[PROCESS_DESCRIPTORS]; /* what it gets as descriptors 4, 5; 0: none */
    struct process_limits limits;
    const struct enclosure *enclosure; /* NULL: it sees what we see */
    void (*ended)(struct process *self);
    void *context; /* for `ended` */

    /* What became of it. */
    struct capture output, data;
    int start_error; /* an errno if it never began to run */
    int wait_status; /* as waitpid gave it */
    bool late;       /* its time was over before it ended: warned or killed, or the CPU's */
    bool stopped;    /* killed by processes_stop or processes_hurry */
    double started, seconds;

    /* process.c's own */
    pid_t pid;
    int output_from, data_from, error_from;
    double deadline;
    bool hurried, warned, killed;
    struct process *next;
};

struct processes;

/* processes_new - an empty set; from now on this process adopts its descendants' orphans, and a
 * signal that has a handler ends processes_wait. owns: the caller (processes_free, with none
 * running) */
struct processes *processes_new(void);
void processes_free(struct processes *all);

/* process_start - start `process`, whose first part is filled in and whose rest is zero
 * errors: an errno if no child or pipe can be had: a fault of the machine. What goes wrong in the
 *         child before its program runs is in start_error when it has ended.
 * `process` belongs to the caller and must live until it has ended; then process_close it. */
int process_start(struct processes *all, struct process *process);
void process_close(struct process *process);

int processes_running(const struct processes *all);

/* processes_wait - sleep until something happens (output, an end, a deadline, a signal); handle it
 */
void processes_wait(struct processes *all);

/* processes_hurry - let them have no more than so many seconds from now; then they are killed as
 * `stopped` */
void processes_hurry(struct processes *all, double seconds);

/* processes_allow - give all that run so many seconds from now, and so the same deadline */
void processes_allow(struct processes *all, double seconds);

/* processes_stop - kill everything now (what has SIGTERM as its late_signal gets that first, to
 * stop children of its own); returns when nothing is left. `ended` is not called. */
void processes_stop(struct processes *all);

/* process_run - start one process and wait for its end, where no set is in use. errors: as
 * process_start */
int process_run(struct process *process);

/* process_succeeded - it ran, and exited with 0 */
bool process_succeeded(const struct process *process);

/* ---- what systems do differently: process_linux.c and its twin process_posix.c ---- */

/* system_adopt_orphans - become the parent of orphaned descendants
 * system_kill_orphans - kill and reap every child that is not one of known[0..n-1] */
void system_adopt_orphans(void);
void system_kill_orphans(const pid_t *known, int n);

/* system_confine - in a new child: die with the parent, gain no privileges, be the first to be
 * killed when memory is short */
void system_confine(void);

/* system_watch_parent - in a child's program: end when nobody reads `pipe` any more, where
 * system_confine cannot see to that */
void system_watch_parent(int pipe);

/* system_close_from - close every descriptor from `first` on. Safe between fork and exec. */
void system_close_from(int first);

/* system_signal_threads - send a signal to every thread of a process */
void system_signal_threads(pid_t pid, int signal);

/* system_shared_page - a descriptor for `bytes` of zeroed memory without a name; -1 with errno
 * folder: where a file may be made if that is what it takes */
int system_shared_page(size_t bytes, const char *folder);

/* system_executable - a path to this program, for starting it in another role. owns: static */
const char *system_executable(void);
#endif

#ifndef GRADING_ISOLATION_H
#define GRADING_ISOLATION_H
/* isolation.h - what keeps student code, and the compiler that reads it, away from everything else.
 *
 * There are three levels, and one for code that is one's own; docs/threat-model.md says what each
 * promises:
 *
 *   namespaces  a criterion and its subjects have users, processes, mounts, network and IPC of
 *               their own; student code also has a filter over its system calls
 *   seccomp     the filter, and Landlock against writing where the kernel has it
 *   process     what any POSIX system has: a session, limits, few descriptors
 *   none        nothing at all, for --debug alone: the terminal's session, and nobody who judges
 *
 * isolation_probe finds the level; a child that is to be confined is started with an enclosure
 * (process.h); a subject guards itself before it loads student code. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum isolation_level {
    ISOLATION_NONE = -1,
    ISOLATION_PROCESS,
    ISOLATION_SECCOMP,
    ISOLATION_NAMESPACES
};

enum { ENCLOSURE_PATHS = 8 };

/* enclosure - what a child sees. Paths are absolute and real; lists end with NULL. */
struct enclosure {
    enum isolation_level level;
    const char *hidden[ENCLOSURE_PATHS]; /* folders that appear empty */
    const char *shown[ENCLOSURE_PATHS];  /* what can be read in them all the same, if it exists */
    const char *writable;                /* the one folder that can be written: */
    uint64_t writable_bytes;             /* an empty one of this size; 0: the folder as it is */
    bool gpus;                           /* NVIDIA's devices and shared memory are there */
};

/* isolation_name - "namespaces", ... isolation_parse - the level of a name; ISOLATION_PROCESS for
 * any other text */
const char *isolation_name(enum isolation_level level);
enum isolation_level isolation_parse(const char *name);

/* isolation_probe - the highest level that works here, as a child found by trying. It is the
 * first answer that counts for the whole process.
 * home: the checkout, which must be readable inside; folder: a private folder
 * The environment variable GRADE_ISOLATION names a level that is not to be exceeded; it is never
 * ISOLATION_NONE. */
enum isolation_level isolation_probe(const char *home, const char *folder);

/* isolation_protect - from now on, nobody else of this user may look into or trace this process */
void isolation_protect(void);

/* isolation_guard - in a subject, before student code is loaded: no rights of root, and no system
 * call that starts a program or process, reaches another one, or the network, or changes the system
 * device:  "cpu", "sim" or "cuda"; the latter two need more
 * returns: false with errno if that cannot be had */
bool isolation_guard(enum isolation_level level, const char *device);

/* ---- what systems do differently: isolation_linux.c, isolation_seccomp.c and their twin
 * isolation_posix.c ---- */

/* isolation_fork - as fork; with an enclosure of level namespaces, into new ones.
 * isolation_enter - the child's part, between fork and exec. returns: false with errno. Both do
 * nothing more for no enclosure (NULL). */
pid_t isolation_fork(const struct enclosure *enclosure);
bool isolation_enter(const struct enclosure *enclosure);

/* isolation_filter - the system calls' part of isolation_guard. returns: false with errno */
bool isolation_filter(const char *device);
bool isolation_drop_rights(void);

#endif

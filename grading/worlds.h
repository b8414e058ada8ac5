#ifndef GRADING_WORLDS_H
#define GRADING_WORLDS_H
/* worlds.h - the subjects of one criterion: one process per rank of every world size, all at once.
 *
 * What comes back from them is untrusted, and here it becomes either complete observations or a
 * reason to fail. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "criteria/criterion.h"
#include "grading/crash.h"
#include "grading/process.h"

struct worlds;

/* One subject. */
struct inhabitant {
    struct worlds *worlds;
    int rank, world_size;
    char *folder;
    int page;                          /* descriptor of its status page */
    int listener;                      /* its listening socket, 0: none */
    struct process process;            /* how it ended, and what it printed */
    struct status_page status;         /* as it was at the end */
    struct observations *observations; /* NULL: malformed */
};

struct worlds {
    /* Filled in by whoever starts them; borrowed. */
    const struct criterion *criterion;
    const char *executable; /* this program */
    const char *device;     /* "cpu", "cuda" or "sim" */
    const char *plugin;     /* of the device; "" for the CPU */
    const char *library;    /* the student's */
    const char *folder;     /* an existing folder for this criterion alone */
    uint64_t seed;
    double timeout_s;
    const char *isolation; /* name of the level */
    const char *meeting;   /* the file where ranks find each other; NULL: each gets all addresses */
    const char *const *debugger; /* NULL; or what rank 0 runs under, on our terminal: its words, up
                                    to the name of the role, NULL-ended. Its end is the others'. */
    const char *sanitizer;       /* that the library is built with, or "" */

    int count;
    struct inhabitant *at;
    struct processes *all;
};

/* worlds_observe - start every subject, wait until none is left, decode what they recorded
 * returns: false if *interrupted became true. errors: ends the program as a fault of the machine */
bool worlds_observe(struct worlds *worlds, const volatile bool *interrupted);
void worlds_close(struct worlds *worlds);

/* worlds_find - a subject, or NULL */
struct inhabitant *worlds_find(const struct worlds *worlds, int world_size, int rank);

/* ---- outcome.c ---- */

/* worlds_outcome - 0: every subject observed to the end and nothing went wrong. Otherwise
 * STATUS_FAILED or STATUS_TIMEOUT of run.h, and why: the most telling reason among all ranks.
 * owns: *reason is borrowed from the scope */
int worlds_outcome(const struct worlds *worlds, const char **reason);

/* inhabitant_began - whether student code can have run in it */
bool inhabitant_began(const struct inhabitant *subject);

/* inhabitant_end - "exited with status 0", "was killed by SIGSEGV", ... owns: borrowed from the
 * scope
 */
const char *inhabitant_end(const struct inhabitant *subject);

/* inhabitant_write - how it ended, and what it printed */
void inhabitant_write(const struct inhabitant *subject, FILE *to);
#endif

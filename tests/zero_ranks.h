#ifndef TESTS_ZERO_RANKS_H
#define TESTS_ZERO_RANKS_H
/* zero_ranks.h - the ranks of a ZeRO engine as processes. What they found is judged in the test's
 * own process. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/zero.h"

enum { RANKS = 4, STEPS = 6, MICROBATCHES = 4, VALUES = 64 };
enum { IN = 4, HIDDEN = 8, OUT = 2 }; /* of the small model */

/* What a rank found, in memory shared with the test. */
struct report {
    bool complete;
    char error[300];
    double parameters[STEPS][VALUES]; /* the trainable ones, one after the other */
    double losses[STEPS][MICROBATCHES];
    double scales[STEPS];
    int64_t skipped[STEPS];
    bool frozen_changed;
    int64_t gradients_left;
    struct engine_stats stats;
    int64_t reduced_before_the_end; /* collectives during backward */
};

typedef int rank_fn(struct group *group, struct report *report, const void *context);

static inline void rank_main(rank_fn *body, int rank, int world_size, const char *file,
                             struct report *report, const void *context)
{
    SCOPE;
    struct group_options options = {.rank = rank, .world_size = world_size, .file = file};
    struct group *group = group_connect(&options);
    if (group)
        report->complete = body(group, report, context) == 0;
    if (error_occurred())
        snprintf(report->error, sizeof report->error, "%s: %s",
                 error_type_of(error_pending())->name, error_message(error_pending()));
    group_close(group);
}

/* run_ranks - `body` in a process for each rank; the reports, until reports_free */
static inline struct report *run_ranks(int world_size, rank_fn *body, const void *context)
{
    struct report *reports = mmap(NULL, RANKS * sizeof *reports, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(reports, MAP_FAILED);
    char folder[] = "/tmp/test_zero.XXXXXX", file[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/ranks", folder);
    for (int rank = 0; rank < world_size; rank++) {
        if (fork() == 0) {
            rank_main(body, rank, world_size, file, &reports[rank], context);
            exit(0);
        }
    }
    for (int status; wait(&status) > 0;)
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a rank crashed: %#x", status);
    unlink(file);
    rmdir(folder);
    return reports;
}

static inline struct report *run_ranks_well(int world_size, rank_fn *body, const void *context)
{
    struct report *reports = run_ranks(world_size, body, context);
    for (int rank = 0; rank < world_size; rank++)
        ck_assert_msg(reports[rank].complete, "rank %d: %s", rank, reports[rank].error);
    return reports;
}

static inline void reports_free(struct report *reports)
{
    munmap(reports, RANKS * sizeof *reports);
}
#endif

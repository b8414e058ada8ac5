#ifndef ASSIGNMENT_PIPELINE_H
#define ASSIGNMENT_PIPELINE_H
/* Problem 2: pipeline parallelism. See docs/handout.md. */
#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/nn.h"
#include "runtime/ops.h"
#include "runtime/scope.h"
#include "runtime/workers.h"

/* Work that can go on at the same time: microbatch i in stage j. */
struct pair {
    int microbatch, stage;
};
struct wave {
    int n;
    struct pair *at;
};
struct schedule {
    int n;
    struct wave *at;
};

/* schedule_new - `waves` waves, all of them empty, each with room for `stages` pairs
 * owns: borrowed from the scope. errors: NULL, with MemoryError */
static inline struct schedule *schedule_new(int waves, int stages)
{
    struct schedule *schedule = scope_alloc(sizeof *schedule);
    struct wave *at = scope_alloc((size_t)waves * sizeof *at);
    struct pair *pairs = scope_alloc((size_t)waves * (size_t)stages * sizeof *pairs);
    if (!schedule || !at || !pairs)
        return NULL;
    for (int k = 0; k < waves; k++)
        at[k].at = pairs + (size_t)k * (size_t)stages;
    *schedule = (struct schedule){waves, at};
    return schedule;
}

/* wave_add - append a pair to a wave that has room for it */
static inline void wave_add(struct wave *wave, int microbatch, int stage)
{
    wave->at[wave->n++] = (struct pair){microbatch, stage};
}

/* clock_cycles - the pipeline's schedule
 * returns: microbatches + stages - 1 waves (none without microbatches); wave k holds every pair
 *          with microbatch + stage == k, by increasing stage
 * owns:    borrowed from the scope
 * errors:  NULL, with ValueError if microbatches < 0 or stages < 1 */
struct schedule *clock_cycles(int microbatches, int stages);

/* A pipeline: stages[j] is already on devices[j] and runs in worker thread j. */
struct pipe {
    int stage_count;
    struct module **stages;
    struct device *devices;
    int64_t split_size; /* rows of a microbatch */
    struct workers *workers;
};

/* A microbatch's turn in a stage: all that a submitted task needs. workers_submit copies it. */
struct turn {
    struct module *stage;
    struct device device;
    struct tensor *microbatch;
};

/* pipe_forward - the stages applied to inputs, in microbatches, waves at a time
 * shapes:  inputs (rows, ...) on any device -> (rows, ...) on the last stage's device
 * errors:  NULL, with the first failing stage's own error */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs);
#endif

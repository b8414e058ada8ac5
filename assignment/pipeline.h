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

/* clock_cycles - the pipeline's schedule
 * returns: microbatches + stages - 1 waves (none without microbatches); wave k holds every pair with
 *          microbatch + stage == k, by increasing stage
 * owns:    borrowed from the scope (scope_alloc)
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

/* pipe_forward - the stages applied to inputs, in microbatches, waves at a time
 * shapes:  inputs (rows, ...) on any device -> (rows, ...) on the last stage's device
 * errors:  NULL, with the first failing stage's own error */
struct tensor *pipe_forward(struct pipe *pipe, struct tensor *inputs);
#endif

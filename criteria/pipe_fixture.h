#ifndef CRITERIA_PIPE_FIXTURE_H
#define CRITERIA_PIPE_FIXTURE_H
/* pipe_fixture.h - pipelines for the criteria of the pipeline section. */
#include "assignment/pipeline.h"
#include "criteria/watch.h"

enum { PIPE_STAGES_MAX = 3 };

/* A pipe with all that it points to. Declare it where it outlives its workers. */
struct test_pipe {
    struct pipe pipe;
    struct module *stages[PIPE_STAGES_MAX];
    struct device devices[PIPE_STAGES_MAX];
    struct watch watches[PIPE_STAGES_MAX];
};

/* pipe_model - the stages of a pipe, in a row: one, two or three, 4 columns in and 3 out, with
 * values drawn for this run: [Linear(4, 7) + Tanh, Linear(7, 3)], with Linear(7, 7) between; alone,
 * both in one. Names: "0.0.weight" is in stage 0. owns: borrowed from the scope */
struct module *pipe_model(int stages, uint64_t seed);

/* pipe_open - the same in a pipe, on the subject's devices, every stage watched
 * returns: false, with the reason recorded, if the workers cannot be started
 * pipe_close - join the workers */
bool pipe_open(struct subject *s, struct test_pipe *test, int stages, int64_t split);
void pipe_close(struct test_pipe *test);
#endif

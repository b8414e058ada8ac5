#ifndef CRITERIA_FORWARD_CALLS_H
#define CRITERIA_FORWARD_CALLS_H
/* forward_calls.h - the calls of pipe_forward that the criterion `forward` observes, and under
 * which keys; forward_causes.c makes guesses about the same calls. */
#include "criteria/pipe_fixture.h"

/* One pipe each, given these batches one after the other, each with and without grad mode. */
enum { SESSIONS = 7 };

/* One call of pipe_forward. */
struct call {
    int stages, session, batch;
    int64_t split, rows;
    bool grad;
};

/* call_next - go on to the next of all calls; start with all zero. false: that was the last
 * call_key - "2 5 1 0", which begins the keys of what is observed in it: "KEY trace" (the caller's
 *         submits and receives), "KEY stage J" (worker, task, rows of each time that the stage
 * ran), "KEY stage J with grad" (how many of them), "KEY output", "KEY inputs", "KEY grad mode"
 * call_name - the call, for a message
 * call_inputs - (rows, 4)
 * call_microbatches - into how many it is to be split */
bool call_next(struct call *c);
const char *call_key(const struct call *c);
const char *call_name(const struct call *c);
struct tensor *call_inputs(const struct call *c, uint64_t seed);
int call_microbatches(const struct call *c);

/* A stage that fails, on one of its microbatches: "failing I: error", "failing I: returned NULL" */
enum { FAILING_CASES = 5 };
#define FAILING_TYPE "StageError"
struct failing_case {
    int stages;
    int64_t split, rows;
    int stage, microbatch;
};
extern const struct failing_case failing_cases[FAILING_CASES];
const char *failing_message(uint64_t seed, int index);

/* A trace is the caller's events as numbers: the stage, plus TRACE_RECEIVED where it is a receive.
 *
 * trace_made - what a caller does in this order
 * trace_diagram - two rows, "expected" and "yours", with a mark below where they part; long traces
 *         are cut around it. owns: borrowed from the scope */
enum { TRACE_RECEIVED = 100 };
enum trace_order {
    TRACE_BY_WAVE,          /* the right one: a wave's submits, then its receives */
    TRACE_BY_PAIR,          /* a receive after every submit */
    TRACE_ALL_AT_ONCE,      /* all submits, then all receives */
    TRACE_REVERSE_RECEIVES, /* a wave's receives from the last stage to the first */
    TRACE_FIRST_WORKER,     /* as by wave, but with the first worker for every stage */
};
int64_t *trace_made(int stages, int microbatches, enum trace_order order, int64_t *n);
bool trace_same(const int64_t *a, int64_t a_n, const int64_t *b, int64_t b_n);
const char *trace_diagram(const int64_t *got, int64_t got_n, const int64_t *right, int64_t right_n);

extern const struct hypothesis forward_causes[];
#endif

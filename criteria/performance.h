#ifndef CRITERIA_PERFORMANCE_H
#define CRITERIA_PERFORMANCE_H
/* performance.h - how both speedup criteria measure: five pairs of a baseline and the student's
 * way, three updates each, from the same parameters, in alternating order.
 *
 * Times are taken in the subject, by the grader's code, from the monotonic clock; a process that
 * runs student code could forge them, no more and no less than any benchmark of foreign code in its
 * own process. What was computed is judged outside: after every pair, rows of every parameter are
 * compared with updates that the judge makes itself, so skipped or cheaper work earns nothing. */
#include "criteria/fixture.h"

struct workload {
    int blocks;
    int64_t width, rows, microbatch;
    int warmups, pairs, updates;
    double learning_rate;
    int scale; /* each dimension is charged as so many times as long */
};

/* performance_workload - the assignment's on GPUs (smaller and charged in full where they are
 * simulated); on the CPU a small one of the same form */
struct workload performance_workload(struct device device);

/* performance_model - the blocks of residual_mlp in two halves, "0" and "1", on the CPU
 * performance_batch - inputs and targets of all rows, on the CPU */
struct module *performance_model(const struct workload *w, uint64_t seed);
struct batch performance_batch(const struct workload *w, uint64_t seed);

/* contender - one update of `model`, from where it is. false: it failed, and that is recorded */
struct contender {
    struct module *model;
    bool (*update)(struct subject *s, void *context);
    void *context;
};

/* performance_observe - run the protocol; with several ranks, every rank calls it. A rank without a
 * part in the baseline gives NULL for it, and waits.
 * returns: whether all went well */
bool performance_observe(struct subject *s, const struct workload *w,
                         const struct contender *baseline, const struct contender *student);

/* performance_judge - compare the parameters, put the measurements into the report, and fail if the
 * median of the ratios is below the threshold. The slower rank counts. */
bool performance_judge(struct judge *j, int world_size, double threshold);
#endif

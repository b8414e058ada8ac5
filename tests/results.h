#ifndef TESTS_RESULTS_H
#define TESTS_RESULTS_H
/* results.h - a run of four criteria, of which the third is blocked. */
#include "grading/rubric.h"
#include "grading/run.h"

/* Worth 7 + 7 + 14 + 5 points. */
static const char *const ids[] = {"partitions", "gradients", "dp_performance", "schedule"};
enum { RESULTS = sizeof ids / sizeof *ids };
static struct result results[RESULTS];
static struct run run = {.device = "cpu", .count = RESULTS, .results = results};

static inline void reset_results(void)
{
    for (int i = 0; i < RESULTS; i++)
        results[i] = (struct result){.criterion = rubric_find(ids[i])};
    results[2].status = STATUS_BLOCKED;
    results[2].reason = (char *)"needs two V100 GPUs";
}
#endif

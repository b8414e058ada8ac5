#ifndef GRADING_SUMMARY_H
#define GRADING_SUMMARY_H
/* summary.h - what a person sees: a line per criterion, then the score. */
#include <stdbool.h>
#include <stdio.h>

#include "grading/run.h"

struct summary {
    FILE *out;
    bool color, quiet;
    int width; /* of the longest id */
};

/* summary_begin - color: "auto", "always" or "never" */
void summary_begin(struct summary *summary, FILE *out, const char *color, bool quiet,
                   const struct run *run);

/* summary_result - the line of a criterion that has its status, and the reason beneath */
void summary_result(const struct summary *summary, const struct result *result);

/* summary_end - the score, what was blocked, and where the report is */
void summary_end(const struct summary *summary, const struct run *run, const char *report);
#endif

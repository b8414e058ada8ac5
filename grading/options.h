#ifndef GRADING_OPTIONS_H
#define GRADING_OPTIONS_H
/* options.h - the command line. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "grading/rubric.h"

#define GRADE_VERSION "0.1.0"

struct options {
    enum action { ACTION_GRADE, ACTION_DEBUG, ACTION_LIST, ACTION_HELP, ACTION_VERSION } action;
    const char *device;      /* "auto", "cpu", "cuda", "sim" */
    const char *sim_profile; /* NULL, or "v100-nvlink", "v100-pcie" */
    bool measure;            /* time the speedups on GPUs that are not graded */
    const char *section;     /* "all" or a section */
    const char *submission;  /* NULL: the checkout that grade lives in */
    const char *output;
    double timeout_s;
    uint64_t seed;     /* given, or drawn */
    const char *color; /* "auto", "always", "never" */
    bool quiet;
    const char *sanitizer; /* "", "address" or "thread" */
    int count;             /* selected criteria, in the rubric's order */
    const struct criterion *selected[RUBRIC_MAX];
    const struct criterion *debugged; /* NULL, or the one that is to run under a debugger */
};

/* options_parse - read the command line. Strings are borrowed from argv.
 * errors: -1, with one line in *problem that names the option, the value and what is allowed (owns:
 *         the caller) */
int options_parse(int argc, char **argv, struct options *options, char **problem);

/* options_help - the text of --help. options_list - the text of --list: the selected criteria */
void options_help(FILE *out);
void options_list(FILE *out, const struct options *options);
#endif

#ifndef GRADING_RUN_H
#define GRADING_RUN_H
/* run.h - from a submission's three files to a verdict for every selected criterion. */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "criteria/criterion.h"
#include "grading/submission.h"

enum status { STATUS_PENDING, STATUS_PASSED, STATUS_FAILED, STATUS_TIMEOUT, STATUS_BLOCKED };

/* status_name - "passed", ... as in the report */
const char *status_name(enum status status);

/* result - what is known of one selected criterion. Strings and JSON are owned by the result. */
struct result {
    const struct criterion *criterion;
    enum status status;
    double seconds;
    int returncode;       /* of the criterion process; -signal if one ended it */
    char *reason;         /* NULL if passed: one or more lines for the student */
    char *cause;          /* NULL, or the reason's last line: what may have led to it */
    char *blocked;        /* NULL, or why it is blocked although it is run: it is only measured */
    char *log;            /* path of its log, as given to the run */
    json_t *measurements; /* NULL, or an object */
};

struct run {
    const char *home; /* the checkout that holds runtime/, assignment/ and build/ */
    const char *sources[SUBMISSION_FILES]; /* private copies, as submission_names names them */
    const char *folder;                    /* private folder for this run's builds and processes */
    const char *device;                    /* "cpu", "cuda" or "sim" */
    uint64_t seed;
    const char *sanitizer; /* for the student files: "" or NULL, "address" or "thread" */
    double timeout_s;      /* per criterion */
    int count;             /* selected criteria, in the rubric's order */
    struct result
        *results; /* criterion and log filled in; BLOCKED ones have their reason already */
};

/* run_criteria - build what is needed, run every pending criterion in processes of its own, several
 * at a time, and fill in the results; `finished` is called for each as it ends
 * returns: 0; -1 on a fault of the machine, with one line in *fault (owned by the caller). What had
 *          finished by then is in the results; the others stay pending.
 * When *interrupted becomes true, everything that was started is killed and -1 is returned with
 * *fault NULL. */
int run_criteria(struct run *run, void (*finished)(void *context, struct result *result),
                 void *context, const volatile bool *interrupted, char **fault);

/* run_plugin - the file to load for the run's device, or "". owns: borrowed from the scope */
const char *run_plugin(const struct run *run);

/* criterion_main, subject_main - the other two roles of the executable, entered when it is started
 * as "grade-criterion" or "grade-subject" */
int criterion_main(int argc, char **argv);
int subject_main(int argc, char **argv);
#endif

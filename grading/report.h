#ifndef GRADING_REPORT_H
#define GRADING_REPORT_H
/* report.h - the report of a run: a JSON file that is whole at every moment, and logs beside it.
 *
 * It is written aside and renamed, so that a reader sees a former or a new one and never half of
 * one. A run that finishes nothing leaves a former report as it was. */
#include <jansson.h>
#include <stdbool.h>

#include "grading/run.h"

enum { REPORT_SCHEMA_VERSION = 1 };

struct report {
    char *path;   /* where it really is: links resolved */
    char *logs;   /* folder of the logs, absolute */
    json_t *head; /* what is known before anything runs */
    char *broken; /* why the report could not be written, or NULL */
    bool own;     /* what is at the path is this run's, or nothing */
};

/* report_open - make sure that a report can be written to `path`, and create the folders for it and
 * for its logs (NAME-logs beside NAME.json). Logs of former runs are removed.
 * errors: -1, with one line in *problem (owns: the caller) */
int report_open(struct report *report, const char *path, char **problem);

/* report_log - the path for a criterion's log. owns: the caller */
char *report_log(const struct report *report, const char *id);

/* report_begin - take over the head; where there is no former report, write one without results */
void report_begin(struct report *report, json_t *head, const struct run *run);

/* report_update - write the report as results are now; but a former report stays until a criterion
 * has finished, or the run is complete
 * state: "running", "complete", "interrupted", "fault"; detail: which signal or fault, or NULL
 * errors: none; report->broken says why it could not be written, the last time */
void report_update(struct report *report, const struct run *run, const char *state,
                   const char *detail);

void report_close(struct report *report);

/* report_put - set a key of an object to a new value (taken over)
 * report_text - a JSON string of cleaned text; null for NULL. errors: end the command as a fault */
void report_put(json_t *object, const char *key, json_t *value);
json_t *report_text(const char *text);
#endif

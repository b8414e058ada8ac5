#ifndef GRADING_FACTS_H
#define GRADING_FACTS_H
/* facts.h - what a report says about a run before any result: when, where, with what. */
#include <jansson.h>

#include "grading/gpus.h"
#include "grading/options.h"
#include "grading/run.h"
#include "grading/submission.h"

/* facts_json - the report's first keys. owns: the caller. errors: end the command as a fault */
json_t *facts_json(const struct options *options, const struct run *run,
                   const struct submission *submission, const struct gpus *gpus);
#endif

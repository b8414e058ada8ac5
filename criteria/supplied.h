#ifndef CRITERIA_SUPPLIED_H
#define CRITERIA_SUPPLIED_H
/* supplied.h - the grader's own functions for a student's, where a criterion is about what calls
 * them. They are called from a student's library, by the function that supplied/NAME.c puts there,
 * and work here: what a student's file defines, though it be named like the runtime's, is out of
 * their sight. */
#include "assignment/data_parallel.h"
#include "assignment/pipeline.h"

#define FOR_LIBRARIES __attribute__((visibility("default")))

FOR_LIBRARIES int supplied_average_gradients(struct module *model);
FOR_LIBRARIES struct schedule *supplied_clock_cycles(int microbatches, int stages);
#endif

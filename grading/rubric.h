#ifndef GRADING_RUBRIC_H
#define GRADING_RUBRIC_H
/* rubric.h - all criteria of this program, as their files registered them. */
#include "criteria/criterion.h"

enum { RUBRIC_MAX = 64 };

/* rubric_all - every criterion in the rubric's order. returns: how many */
int rubric_all(const struct criterion *const **list);

/* rubric_find - the criterion with this id, or NULL */
const struct criterion *rubric_find(const char *id);

/* rubric_sections - the sections in the rubric's order, NULL-ended. owns: borrowed */
const char *const *rubric_sections(void);
#endif

#ifndef TESTS_SUBMISSION_H
#define TESTS_SUBMISSION_H
/* submission.h - submissions that are written, and read or refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "grading/submission.h"
#include "tests/folder.h"

#define LITERAL(s) s, sizeof(s) - 1

/* The three files in a folder, "int a;\n" each. */
static inline void write_three(const char *where)
{
    mkdir(where, 0777);
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", where, submission_names[i]);
        write_bytes(path, LITERAL("int a;\n"));
    }
}

static struct submission submission;
static char *problem;

static inline void expect_read(const char *path)
{
    ck_assert_msg(submission_read(path, NULL, &submission, &problem) == 0, "%s", problem);
}

static inline void expect_refused(const char *path, const char *first, const char *second)
{
    ck_assert_int_eq(submission_read(path, NULL, &submission, &problem), -1);
    ck_assert_msg(strstr(problem, first), "'%s' is not in: %s", first, problem);
    ck_assert_msg(strstr(problem, second), "'%s' is not in: %s", second, problem);
    ck_assert_ptr_null(strchr(problem, '\n'));
    ck_assert_ptr_null(submission.files[0].text);
    free(problem);
}
#endif

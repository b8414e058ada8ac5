#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H
/* folder.h - a fresh folder that each test works in, inside the workspace of its program. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/workspace.h"

static const char *base; /* holds the folders of all tests: main sets it to a workspace */
static char folder[512]; /* a fresh one for each test; paths in it are relative */

static inline void enter_folder(void)
{
    snprintf(folder, sizeof folder, "%s/XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static inline void write_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}
#endif

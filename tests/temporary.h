#ifndef TESTS_TEMPORARY_H
#define TESTS_TEMPORARY_H
/* temporary.h - a temporary folder for a test, and files in it. The including file defines
 * _GNU_SOURCE first. */
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char temporary[4096]; /* the folder's real path */

static inline void temporary_create(void)
{
    char path[] = "/tmp/grade-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_ptr_nonnull(realpath(path, temporary));
}

static inline int temporary_remove_one(const char *path, const struct stat *what, int kind,
                                       struct FTW *at)
{
    (void)what;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void temporary_remove(void)
{
    nftw(temporary, temporary_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* "FOLDER/NAME". owns: static, one of eight that take turns */
static inline const char *temporary_path(const char *name)
{
    static char paths[8][8192];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temporary, name);
    return path;
}

static inline const char *temporary_write(const char *name, const char *text)
{
    const char *path = temporary_path(name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

/* The file's text. owns: the caller (free) */
static inline char *temporary_read(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    char *text = NULL;
    size_t room = 0;
    if (getdelim(&text, &room, '\0', file) < 0)
        text[0] = '\0';
    fclose(file);
    return text;
}
#endif

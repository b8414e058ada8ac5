#ifndef TESTS_CLI_H
#define TESTS_CLI_H
/* cli.h - the built command, run in a fresh folder, on copies of the reference solution. */
#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "grading/fault.h"
#include "grading/submission.h"
#include "grading/workspace.h"

static char *root, *executable; /* the checkout, and the grade that is tested */
static const char *base;        /* holds the folders of all tests */
static char folder[512];        /* a fresh one for each test, its working directory */

/* find_grade - what main does first */
static inline void find_grade(void)
{
    const char *variant = getenv("VARIANT");
    base = workspace_create();
    root = realpath(".", NULL);
    executable = format_or_fault("%s/build/%s/grade", root, variant ? variant : "release");
}

/* keep - a string that lasts as long as the test. returns: the string */
static inline const char *keep(char *text)
{
    static char *kept[200];
    static int n;
    ck_assert_int_lt(n, (int)(sizeof kept / sizeof *kept));
    return kept[n++] = text;
}

/* ---- running programs ---- */

/* What a program did. */
struct outcome {
    int status; /* exit status, or -signal */
    char out[1 << 16], err[1 << 14];
};
static struct outcome outcome;

static inline void read_text(const char *path, char *text, size_t n)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    text[fread(text, 1, n - 1, file)] = '\0';
    fclose(file);
}

enum { ARGUMENTS = 8 };

/* Output goes to files beside the working directory. */
static inline pid_t start(const char *const *arguments)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    if (!freopen("../out", "w", stdout) || !freopen("../err", "w", stderr))
        _exit(126);
    execvp(arguments[0], (char **)arguments);
    _exit(127);
}

static inline int end_of(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline int run(const char *const *arguments)
{
    outcome.status = end_of(start(arguments));
    read_text("../out", outcome.out, sizeof outcome.out);
    read_text("../err", outcome.err, sizeof outcome.err);
    return outcome.status;
}

/* grade ARGUMENT... NULL */
static inline int grade(const char *first, ...)
{
    const char *arguments[ARGUMENTS + 2] = {executable, first};
    va_list rest;
    va_start(rest, first);
    for (int i = 1; arguments[i]; i++)
        arguments[i + 1] = va_arg(rest, const char *);
    va_end(rest);
    return run(arguments);
}

/* Orphans of this process's descendants become its children, so that none can hide. */
static inline void adopt_orphans(void)
{
#ifdef __linux__
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
#endif
}

static inline void enter_folder(void)
{
    char *outer = format_or_fault("%s/XXXXXX", base);
    keep(outer);
    ck_assert_ptr_nonnull(mkdtemp(outer));
    snprintf(folder, sizeof folder, "%s/work", outer);
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(mkdir("tmp", 0777), 0);
    ck_assert_int_eq(setenv("TMPDIR", keep(format_or_fault("%s/tmp", folder)), 1), 0);
    adopt_orphans();
}

/* ---- submissions ---- */

/* in_root - a path in the checkout */
static inline const char *in_root(const char *path)
{
    return keep(format_or_fault("%s/%s", root, path));
}

/* plant - copy a file, with `code` as the first statement of the function, or of all if it is "" */
static inline void plant(const char *from, const char *to, const char *function, const char *code)
{
    char line[512], mark[128];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    ck_assert_msg(in && out, "%s, %s: %s", from, to, strerror(errno));
    snprintf(mark, sizeof mark, "BEGIN_STUDENT %s", function);
    if (!*function)
        fputs("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n", out);
    while (fgets(line, sizeof line, in)) {
        fputs(line, out);
        if (strstr(line, mark) && !strstr(line, "helpers"))
            fprintf(out, "%s\n", code);
    }
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
}

/* write_submission - sub/assignment/: the reference solution, with code planted in a function of a
 * file. file NULL: all files */
static inline void write_submission(const char *file, const char *function, const char *code)
{
    mkdir("sub", 0777);
    mkdir("sub/assignment", 0777);
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        bool here = !file || strcmp(file, submission_names[i]) == 0;
        char *name =
            format_or_fault("tests/submissions/reference/assignment/%s", submission_names[i]);
        char *to = format_or_fault("sub/assignment/%s", submission_names[i]);
        plant(in_root(name), to, here ? function : "nothing", code);
        free(name);
        free(to);
    }
}
#endif

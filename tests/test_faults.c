/* test_faults.c - every kind of call fails once, everywhere in turn: grade says so, or survives it
 * with the true result. It never gives a wrong score, never hangs and leaves nothing.
 *
 * FAULTS_ALL=1 in the environment fails every single call instead of a growing choice of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/alone.h"
#include "tests/bytes.h"
#include "tests/suite.h"

enum { MEMORY_FIRST = 5, SECONDS_EACH = 60 };

static const char *const kinds[] = {"fork", "pipe", "exec", "rename", "mkdir", "socket",
                                    "dup",  "poll", "open", "write",  "mmap",  "memory"};
static const char *const roles[] = {"grade", "child", "criterion"};
enum { KINDS = sizeof kinds / sizeof kinds[0], ROLES = sizeof roles / sizeof roles[0] };

static const struct {
    const char *path;
    int status; /* without a fault */
    bool earns;
} submissions[] = {{"reference", 0, true}, {"broken", 1, false}};
enum { SUBMISSIONS = sizeof submissions / sizeof submissions[0] };

static int told; /* watches the file that the preloaded library opens */

/* A copy of the reference whose schedule is wrong, and the library where every process finds it. */
static void prepare(void)
{
    char command[16384];
    temporary_create();
    snprintf(command, sizeof command,
             "cd '%s' && mkdir work && cp -r \"$OLDPWD/tests/submissions/reference\" . &&"
             " cp \"$OLDPWD/" BUILD_FOLDER "/tests/faults.so\" . && cp -r reference broken &&"
             " printf '%%s\\n' '#define clock_cycles clock_cycles_of_the_reference'"
             " | cat - reference/assignment/pipeline.c > broken/assignment/pipeline.c &&"
             " printf '%%s\\n' '#undef clock_cycles'"
             " 'struct schedule *clock_cycles(int m, int n) { (void)m; (void)n; return NULL; }'"
             " >> broken/assignment/pipeline.c && : > told && chmod 755 .",
             temporary);
    ck_assert_int_eq(system(command), 0);
    told = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ck_assert_int_ge(inotify_add_watch(told, temporary_path("told"), IN_OPEN), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void put_plan(const char *kind, const char *role, long at)
{
    char number[24];
    snprintf(number, sizeof number, "%ld", at);
    setenv("LD_PRELOAD", temporary_path("faults.so"), 1);
    setenv("FAULT_KIND", kind, 1);
    setenv("FAULT_ROLE", role, 1);
    setenv("FAULT_AT", number, 1);
    setenv("FAULT_TOLD", temporary_path("told"), 1);
    setenv("TMPDIR", temporary_path("work"), 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

/* returns: exit status, or -signal */
static int grade(const char *submission, const char *kind, const char *role, long at)
{
    int status;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (!freopen(temporary_path("out"), "w", stdout) ||
            !freopen(temporary_path("err"), "w", stderr))
            _exit(126);
        alarm(SECONDS_EACH);
        put_plan(kind, role, at);
        execl(BUILD_FOLDER "/grade", BUILD_FOLDER "/grade", "--only", "schedule", "--device", "cpu",
              "--submission", temporary_path(submission), "--output", temporary_path("report.json"),
              NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool was_told(void)
{
    char events[4096];
    bool any = false;
    while (read(told, events, sizeof events) > 0)
        any = true;
    return any;
}

static int number_in(const json_t *report, const char *key)
{
    return (int)json_integer_value(json_object_get(report, key));
}

/* What the report says: no points but those that were earned. There may be none yet.
 * complete: that all were given */
static bool is_score_true(int s, bool complete)
{
    json_t *report = json_load_file(temporary_path("report.json"), 0, NULL);
    int earned = number_in(report, "earned"), possible = number_in(report, "possible");
    json_decref(report);
    return complete ? possible > 0 && earned == (submissions[s].earns ? possible : 0)
                    : earned == 0 || submissions[s].earns;
}

static bool says_so(int status, const char *err)
{
    return status == 70 ? strstr(err, "grade: a fault of this machine") != NULL
                        : strncmp(err, "grade: ", 7) == 0;
}

static int entries_of(const char *path)
{
    int n = -2;
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* One call failed: check all that was promised. returns: whether it did fail */
static bool try(int s, const char *kind, const char *role, long at)
{
    unlink(temporary_path("report.json"));
    int status = grade(submissions[s].path, kind, role, at);
    bool failed = was_told(), survived = status == submissions[s].status;
    bool refused = failed && (status == 70 || status == 64);
    char *err = temporary_read(temporary_path("err"));
    ck_assert_msg((survived || (refused && says_so(status, err))) && is_score_true(s, survived),
                  "%s: %s call %ld in %s: exit status %d: %s", submissions[s].path, kind, at, role,
                  status, err);
    ck_assert_msg(entries_of(temporary_path("work")) == 0, "%s: %s call %ld in %s left its folder",
                  submissions[s].path, kind, at, role);
    ck_assert_msg(is_alone(), "%s: %s call %ld in %s left a process", submissions[s].path, kind, at,
                  role);
    free(err);
    return failed;
}

static long next_after(long at, bool many)
{
    if (getenv("FAULTS_ALL"))
        return at + 1;
    return many ? at + at / 2 + MEMORY_FIRST : at + 1 + at / 4;
}

START_TEST(test_each_call)
{
    const char *kind = kinds[_i / ROLES], *role = roles[_i % ROLES];
    bool many = strcmp(kind, "memory") == 0;
    int n = 0;
    prepare();
    for (long at = 1; try(n % SUBMISSIONS, kind, role, at); at = next_after(at, many))
        n++;
    temporary_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults");
    TCase *calls = tcase_create("calls");
    tcase_set_timeout(calls, getenv("FAULTS_ALL") ? 24 * 3600 : 240);
    tcase_add_loop_test(calls, test_each_call, 0, KINDS * ROLES);
    suite_add_tcase(suite, calls);
    return suite_run(suite);
}

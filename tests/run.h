#ifndef TESTS_RUN_H
#define TESTS_RUN_H
/* run.h - runs over criteria of these tests alone, with student files that are written here. The
 * including file defines _GNU_SOURCE first. */
#include <errno.h>
#include <sys/wait.h>

#include "grading/run.h"
#include "tests/suite.h"
#include "tests/temporary.h"

/* ---- the criterion of most tests: probe(7) is 49 ---- */

int probe(int x);

static inline void observe_probe(struct subject *s)
{
    int answer = student(s, probe)(7);
    if (subject_went_wrong(s, "probe"))
        return;
    observe_int(s, answer, "answer");
}

static inline bool judge_probe(struct judge *j)
{
    return expect_int(j, judge_observations(j, 1, 0), "answer", 49, "the answer");
}

#define FOR_TESTS .section = "test", .observe = observe_probe, .points = 1
CRITERION(t_probe, FOR_TESTS, .file = "data_parallel.c", .judge = judge_probe)

/* ---- running them ---- */

enum { MOST = 4 };

static struct {
    struct run run;
    struct result results[MOST];
    const char *order[MOST]; /* ids as they finished */
    int finished;
    volatile bool interrupted;
    bool interrupt_after_first;
    char *fault;
} t;

static inline void on_finished(void *context, struct result *result)
{
    ck_assert_ptr_eq(context, &t);
    t.order[t.finished++] = result->criterion->id;
    t.interrupted = t.interrupt_after_first;
}

static inline void add(const struct criterion *criterion)
{
    struct result *result = &t.results[t.run.count++];
    char name[64];
    snprintf(name, sizeof name, "%s.log", criterion->id);
    *result = (struct result){.criterion = criterion, .log = strdup(temporary_path(name))};
}

/* Run the criteria over these two files. returns: what run_criteria does */
static inline int run(const char *data_parallel, const char *pipeline)
{
    static char home[4096], sources[3][4200], folder[4200];
    static const char *const names[] = {"data_parallel.c", "pipeline.c", "finetune.c"};
    ck_assert_ptr_nonnull(realpath(".", home));
    for (int i = 0; i < 3; i++)
        strcpy(sources[i], temporary_write(names[i], i == 0   ? data_parallel
                                                     : i == 1 ? pipeline
                                                              : ""));
    strcpy(folder, temporary_path("run"));
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    t.run.home = home;
    t.run.folder = folder;
    for (int i = 0; i < 3; i++)
        t.run.sources[i] = sources[i];
    t.run.device = "cpu";
    t.run.seed = 1;
    t.run.results = t.results;
    if (t.run.timeout_s == 0)
        t.run.timeout_s = 50;
    return run_criteria(&t.run, on_finished, &t, &t.interrupted, &t.fault);
}

static inline void begin(void)
{
    temporary_create();
    setenv("ASAN_OPTIONS", "allocator_may_return_null=1", 1); /* as without a sanitizer */
    setenv("TSAN_OPTIONS", "allocator_may_return_null=1", 1);
    memset(&t, 0, sizeof t);
}

static inline void assert_no_children(void)
{
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static inline void end(void)
{
    assert_no_children();
    for (int i = 0; i < t.run.count; i++) {
        free(t.results[i].log);
        free(t.results[i].reason);
        free(t.results[i].cause);
        json_decref(t.results[i].measurements);
    }
    free(t.fault);
    temporary_remove();
}

static inline void assert_result(int index, enum status status, const char *reason)
{
    const struct result *result = &t.results[index];
    ck_assert_msg(result->status == status, "%s %s: %s", result->criterion->id,
                  status_name(result->status), result->reason ? result->reason : "");
    if (!reason)
        ck_assert_ptr_null(result->reason);
    else
        ck_assert_msg(result->reason && strstr(result->reason, reason),
                      "the reason is not \"%s\" but \"%s\"", reason, result->reason);
}

static inline void run_one(const struct criterion *criterion, const char *source)
{
    add(criterion);
    int status = run(source, "");
    ck_assert_msg(status == 0, "%s", t.fault);
    ck_assert_int_eq(t.finished, 1);
}

#define HEADERS                                                                                    \
    "#include \"assignment/data_parallel.h\"\n#include <signal.h>\n#include <stdio.h>\n"           \
    "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include <fcntl.h>\n"
#define PROBE(body) HEADERS "int probe(int x) {\n" body "\n}\n" /* the body is in line 9 */
#define RIGHT PROBE("return x * x;")

/* run_main - main, which plays the executable's other roles when it is started under their names */
static inline int run_main(int argc, char **argv, Suite *(*suite)(void))
{
    if (strcmp(argv[0], "grade-criterion") == 0)
        return criterion_main(argc, argv);
    if (strcmp(argv[0], "grade-subject") == 0)
        return subject_main(argc, argv);
    return suite_run(suite());
}
#endif

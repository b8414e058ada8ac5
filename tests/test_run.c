/* The run over criteria, end to end: student files are built and called in processes of their own,
 * and whatever they do, the verdict is right, the reason names the place, and nothing is left.
 *
 * This program plays the executable's other roles when it is started under their names. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "grading/run.h"
#include "tests/suite.h"
#include "tests/temporary.h"

/* ---- criteria for these tests alone ---- */

int probe(int x);

static void observe_probe(struct subject *s)
{
    int answer = student(s, probe)(7);
    if (subject_went_wrong(s, "probe"))
        return;
    observe_int(s, answer, "answer");
}

static bool judge_probe(struct judge *j)
{
    return expect_int(j, judge_observations(j, 1, 0), "answer", 49, "the answer");
}

static bool judge_all_probes(struct judge *j)
{
    for (int rank = 0; rank < 3; rank++)
        if (!expect_int(j, judge_observations(j, 3, rank), "answer", 49, "the answer"))
            return false;
    return expect_int(j, judge_observations(j, 2, 1), "answer", 49, "the answer");
}

static bool judge_speed(struct judge *j)
{
    judge_measured(j, "ratio", json_real(1.5));
    return judge_probe(j);
}

static void observe_file(struct subject *s)
{
    (void)student(s, probe)(7);
    observe_int(s, access(subject_file(s, "left"), F_OK), "left");
}

static bool judge_left_file(struct judge *j)
{
    return judge_file(j, 1, 0, "left") ? true : judge_fail(j, "no file was left");
}

static bool judge_badly(struct judge *j)
{
    (void)j;
    return false; /* without a reason */
}

#define FOR_TESTS .section = "test", .observe = observe_probe, .points = 1
CRITERION(t_probe, FOR_TESTS, .file = "data_parallel.c", .judge = judge_probe)
CRITERION(t_ranks, FOR_TESTS, .file = "data_parallel.c", .judge = judge_all_probes,
          .worlds = {2, 3})
CRITERION(t_supplied, FOR_TESTS, .file = "data_parallel.c", .judge = judge_probe,
          .supplied = "average_gradients")
CRITERION(t_pipeline, FOR_TESTS, .file = "pipeline.c", .judge = judge_probe)
CRITERION(t_speed, FOR_TESTS, .file = "pipeline.c", .judge = judge_speed, .speedup = true)
CRITERION(t_broken, FOR_TESTS, .file = "data_parallel.c", .judge = judge_badly)
CRITERION(t_file, .section = "test", .points = 1, .file = "data_parallel.c",
          .observe = observe_file, .judge = judge_left_file)

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

static void on_finished(void *context, struct result *result)
{
    ck_assert_ptr_eq(context, &t);
    t.order[t.finished++] = result->criterion->id;
    t.interrupted = t.interrupt_after_first;
}

static void add(const struct criterion *criterion)
{
    struct result *result = &t.results[t.run.count++];
    char name[64];
    snprintf(name, sizeof name, "%s.log", criterion->id);
    *result = (struct result){.criterion = criterion, .log = strdup(temporary_path(name))};
}

/* Run the criteria over these two files. returns: what run_criteria does */
static int run(const char *data_parallel, const char *pipeline)
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

static void begin(void)
{
    temporary_create();
    setenv("ASAN_OPTIONS", "allocator_may_return_null=1", 1); /* as without a sanitizer */
    setenv("TSAN_OPTIONS", "allocator_may_return_null=1", 1);
    memset(&t, 0, sizeof t);
}

static void assert_no_children(void)
{
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void end(void)
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

static void assert_result(int index, enum status status, const char *reason)
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

static void run_one(const struct criterion *criterion, const char *source)
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

/* ---- one process ---- */

static const struct {
    const char *source;
    const char *reason; /* NULL: passes */
} cases[] = {
    {RIGHT, NULL},
    {PROBE("printf(\"PASS\\n\"); fflush(stdout); return x * x;"), NULL},
    {PROBE("return x * x - 1;"), "the answer"},
    {PROBE("exit(0);"), "exited with status 0 before everything was observed"},
    {PROBE("_exit(0);"), "exited with status 0 before everything was observed"},
    {PROBE("puts(\"PASS\"); _exit(x);"), "exited with status 7 before"},
    {PROBE("return x * x;") "__attribute__((constructor)) void early(void) { _exit(0); }",
     "exited with status 0 before"},
    {PROBE("return x * x;") "__attribute__((constructor)) void early(void) { raise(SIGSEGV); }",
     "SIGSEGV"},
    {PROBE("return x * x;") "__attribute__((destructor)) void late(void) { for (;;) pause(); }",
     NULL},
    {PROBE("abort();"), "crashed: SIGABRT in a call made at assignment/data_parallel.c:9 in probe"},
    {PROBE("return *(volatile int *)0;"),
     "crashed: SIGSEGV (address 0x0) at assignment/data_parallel.c:9 in probe"},
    {PROBE("return (int)strlen((char *)(long)(x + 1));"),
     "crashed: SIGSEGV (address 0x8) in a call made at assignment/data_parallel.c:9 in probe"},
    {PROBE("return *(volatile int *)0x6c0000000010;"),
     "crashed: SIGSEGV (address 0x6c0000000010, in the memory of cuda:1) at "
     "assignment/data_parallel.c:9 in probe"},
    {PROBE("int (*volatile f)(int) = NULL; x += f(x); return x;"),
     "crashed: SIGSEGV (address 0x0) in a call made at assignment/data_parallel.c:9 in probe"},
    {HEADERS "static int helper(int x) { volatile int zero = 0;\n return x / zero; }\n"
             "int probe(int x) { x = helper(x); return x; }\n",
     "SIGFPE"},
    {PROBE("volatile char big[1000]; big[x] = 1; x = probe(x) + big[x]; return x;"),
     ", past the end of the stack) "},
    {PROBE("kill(getpid(), SIGKILL); return x;"), "crashed: SIGKILL"},
    {PROBE("(void)raise_error(ValueError, \"too \\033[31modd: %d\", x); return -1;"),
     "probe raised ValueError: too odd: 7"},
    {HEADERS "int prob(int x) { return x * x; }\n",
     "assignment/data_parallel.c has no function probe"},
    {HEADERS "int missing_helper(int);\nint probe(int x) { return missing_helper(x); }\n",
     "assignment/data_parallel.c uses missing_helper, which neither it nor the runtime defines"},
    {HEADERS "int run_criteria();\nint probe(int x) { return run_criteria(x); }\n",
     "uses run_criteria, which neither"},
    {PROBE("for (int i = 0; i < 64; i++) close(i); return x * x;"), "exited with status"},
    {PROBE("return x * y;"), "assignment/data_parallel.c:9:"},
    {PROBE("for (int i = 0; i < 64; i++) { ssize_t n = write(i, \"{PASS}\", 6); (void)n; } "
           "return x * x;"),
     "unreadable"},
    {PROBE("static const char head[] = {8, 0, 0, 0, 0, 0, 0, 0, 2}; /* a failure of 32 MiB */\n"
           "static char text[32 << 20]; memset(text, x + 'a', sizeof text);\n"
           "ssize_t n = write(3, head, sizeof head); for (size_t at = 0; at < sizeof text; at += "
           "(size_t)n) n = write(3, text + at, sizeof text - at); return x * x;"),
     "hhhhh..."},
    {PROBE("(void)fork(); return x * x;"), NULL},
    {PROBE("return chdir(\"/\") + x * x;"), NULL},
    {PROBE("return getchar() == EOF ? x * x : 0;"), NULL},
    {PROBE("for (int i = 1; i < 65; i++) signal(i, SIG_IGN); return x * x;"), NULL},
    {PROBE("char *all = malloc(1UL << 40); return all ? x : x * x;"), NULL},
    {PROBE("volatile char *p = malloc(40); p[40] = 1; return x * x;"),
     "student code wrote past the end of a block of 40 bytes, allocated at "
     "assignment/data_parallel.c:9 in probe"},
    {PROBE("volatile char *p = malloc(40); p[-1] = 1; free((void *)p); return x * x;"),
     "student code wrote before the start of a block of 40 bytes, allocated at "},
    {PROBE("volatile char *p = malloc(40); free((void *)p); p[2] = 1; return x * x;"),
     "student code wrote, after it was freed, into a block of 40 bytes, allocated at "},
    {PROBE("char *volatile p = malloc(40); free(p); free(p); return x * x;"),
     "student code freed twice a block of 40 bytes, allocated at assignment/data_parallel.c:9"},
    {PROBE("indices_range(5)[x - 2] = 1; return x * x;"),
     "student code wrote past the end of a block of 40 bytes, allocated in a call made at "
     "assignment/data_parallel.c:9 in probe"},
    {PROBE("int64_t n = 5; volatile float *p = tensor_data(tensor_zeros(1, &n, FLOAT32, CPU)); "
           "p[x - 2] = 1; return x * x;"),
     "student code wrote past the end of a block of 20 bytes, allocated at "},
    {PROBE("volatile char *p = malloc(40); p[40] = 1; return *(volatile int *)0;"),
     "crashed: SIGSEGV (address 0x0) at assignment/data_parallel.c:9 in probe\n"
     "student code wrote past the end of a block of 40 bytes"},
    {PROBE("int *volatile p = malloc(4); return *p;"),
     "likely cause: memory is read that was allocated but not written"},
    {PROBE("int *volatile p = malloc(4); free((void *)p); return *p;"),
     "likely cause: memory is used that was freed already"},
    {PROBE("char *volatile p = strdup(\"x\"); free(p); p = malloc(8); p[7] = 1; free(p); "
           "return x * x;"),
     NULL},
};

START_TEST(a_verdict_is_right_whatever_the_student_does)
{
    run_one(&criterion_t_probe, cases[_i].source);
    assert_result(0, cases[_i].reason ? STATUS_FAILED : STATUS_PASSED, cases[_i].reason);
    ck_assert_int_eq(t.results[0].returncode, cases[_i].reason ? 1 : 0);
}
END_TEST

/* ThreadSanitizer holds a signal back until the thread makes a blocking call. */
#ifdef __SANITIZE_THREAD__
#define IN_A_LOOP ""
#else
#define IN_A_LOOP ", at assignment/data_parallel.c:"
#endif

static const struct {
    const char *source, *reason;
} endless[] = {
    {PROBE("for (;;)\n;"), "not finished after 1 s\nrunning" IN_A_LOOP},
    {PROBE("sleep(1000); return x * x;"),
     "not finished after 1 s\nrunning, in a call made at assignment/data_parallel.c:9 in probe"},
    {PROBE("sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, NULL);\n"
           "for (;;) pause();"),
     "not finished after 1 s"},
    {PROBE("for (;;) puts(\"y\");"), "not finished after 1 s"},
    {PROBE("return x * x;") "__attribute__((constructor)) void early(void) { for (;;) pause(); }",
     "not finished after 1 s"},
};

#ifdef __SANITIZE_ADDRESS__
static const struct {
    const char *source, *reason;
} sanitized[] = {
    {RIGHT, NULL},
    {PROBE("char *volatile p = malloc(40); memset(p, 1, (size_t)x + 34); return x * x * p[3];"),
     "heap-buffer-overflow: WRITE of size 41 at assignment/data_parallel.c:9; allocated at "
     "assignment/data_parallel.c:9"},
    {PROBE("volatile char p[40]; p[x + 33] = 1; return x * x + p[39] * 0;"),
     "undefined behaviour: index 40 out of bounds for type 'char [40]' at "
     "assignment/data_parallel.c:9"},
    {PROBE("return x + 2147483647;"), "undefined behaviour: signed integer overflow: 7 + 2147483647"
                                      " cannot be represented in type 'int' at "
                                      "assignment/data_parallel.c:9"},
    {PROBE("return *(volatile int *)0;"), "undefined behaviour: load of null pointer"},
};

START_TEST(a_sanitizer_names_the_students_line)
{
    t.run.sanitizer = "address";
    run_one(&criterion_t_probe, sanitized[_i].source);
    assert_result(0, sanitized[_i].reason ? STATUS_FAILED : STATUS_PASSED, sanitized[_i].reason);
}
END_TEST
#endif

START_TEST(what_never_ends_is_a_timeout)
{
    t.run.timeout_s = 1;
    run_one(&criterion_t_probe, endless[_i].source);
    assert_result(0, STATUS_TIMEOUT, endless[_i].reason);
    ck_assert_int_eq(t.results[0].returncode, 124);
    ck_assert_double_ge(t.results[0].seconds, 1);
}
END_TEST

START_TEST(output_is_kept_in_the_log_and_capped)
{
    run_one(&criterion_t_probe,
            PROBE("printf(\"first\\n\"); for (int i = 0; i < 1000000; i++) puts(\"again\");"
                  "printf(\"last, without an end\"); return *(volatile int *)0;"));
    assert_result(0, STATUS_FAILED, "SIGSEGV");
    char *log = temporary_read(t.results[0].log);
    ck_assert_uint_lt(strlen(log), 140000);
    ck_assert_ptr_nonnull(strstr(log, "first\nagain\n"));
    ck_assert_ptr_nonnull(strstr(log, " bytes cut ...]\n"));
    ck_assert_ptr_nonnull(strstr(log, "again\nlast, without an end\n"));
    free(log);
}
END_TEST

START_TEST(compiler_warnings_are_in_the_log)
{
    run_one(&criterion_t_probe, PROBE("int forgotten; return x * x;"));
    assert_result(0, STATUS_PASSED, NULL);
    char *log = temporary_read(t.results[0].log);
    ck_assert_ptr_nonnull(strstr(log, "assignment/data_parallel.c:9:5: warning: "));
    free(log);
}
END_TEST

/* At other levels no process can be started; tests/test_isolation.c has those. */
START_TEST(a_daemon_is_gone_afterwards)
{
    char source[9000];
    setenv("GRADE_ISOLATION", "process", 1);
    snprintf(
        source, sizeof source,
        PROBE("int fd = open(\"%s\", O_CREAT | O_WRONLY, 0600);\n"
              "if (fork() == 0) { setsid(); if (fork() == 0) { dprintf(fd, \"%%d\", getpid());\n"
              "close(fd); for (;;) pause(); } _exit(0); }\n"
              "while (lseek(fd, 0, SEEK_END) == 0) ; return x * x;"),
        temporary_path("daemon"));
    run_one(&criterion_t_probe, source);
    assert_result(0, STATUS_PASSED, NULL);
    char *pid = temporary_read(temporary_path("daemon"));
    ck_assert_int_gt(atoi(pid), 1);
#if defined(__linux__) && !defined(POSIX_ONLY)
    ck_assert(kill(atoi(pid), 0) < 0 && errno == ESRCH);
#else
    kill(atoi(pid), SIGKILL);
#endif
    free(pid);
}
END_TEST

START_TEST(only_a_regular_file_is_looked_at)
{
    static const struct {
        const char *source;
        enum status status;
    } files[] = {
        {PROBE("return close(open(\"left\", O_CREAT | O_WRONLY, 0600));"), STATUS_PASSED},
        {PROBE("return symlink(\"/etc/hostname\", \"left\");"), STATUS_FAILED},
        {PROBE("return x;"), STATUS_FAILED},
    };
    run_one(&criterion_t_file, files[_i].source);
    assert_result(0, files[_i].status,
                  files[_i].status == STATUS_PASSED ? NULL : "no file was left");
}
END_TEST

/* ---- several ranks ---- */

#define REDUCE                                                                                     \
    "struct tensor *one = tensor_full(SHAPE(3), 1, FLOAT32, CPU);\n"                               \
    "(void)dist_all_reduce(one, DIST_SUM);\n"                                                      \
    "return tensor_get(one, 2) == dist_world_size() ? x * x : -1;"

static const struct {
    const char *source;
    double timeout_s;
    enum status status;
    const char *reasons[2];
} together[] = {
    {PROBE(REDUCE), 0, STATUS_PASSED, {NULL}},
    {PROBE("if (dist_rank() == 1) x = *(volatile int *)0;\n" REDUCE),
     0,
     STATUS_FAILED,
     {"rank 1 of ", "crashed: SIGSEGV (address 0x0) at assignment/data_parallel.c:9 in probe"}},
    {PROBE("if (dist_rank() == 1) return raise_error(TypeError, \"not today\");\n" REDUCE),
     0,
     STATUS_FAILED,
     {"rank 1 of ", "TypeError: not today"}},
    {PROBE("if (dist_rank() == 0) _exit(0);\n" REDUCE), 0, STATUS_FAILED, {"rank 0 of ", "exited"}},
    {PROBE("if (dist_rank() == 1) { raise(SIGABRT); } for (;;) pause(); return x;"),
     0,
     STATUS_FAILED,
     {"rank 1 of ", "SIGABRT"}},
    {PROBE("while (dist_rank() == 1) pause();\n" REDUCE),
     1,
     STATUS_TIMEOUT,
     {"rank 0 of 2: all_reduce", "rank 1 of 2: running, in a call made at "
                                 "assignment/data_parallel.c:9 in probe"}},
};

START_TEST(the_most_telling_rank_gives_the_reason)
{
    t.run.timeout_s = together[_i].timeout_s;
    run_one(&criterion_t_ranks, together[_i].source);
    assert_result(0, together[_i].status, together[_i].reasons[0]);
    for (int i = 0; i < 2 && together[_i].reasons[i]; i++)
        assert_result(0, together[_i].status, together[_i].reasons[i]);
}
END_TEST

START_TEST(every_rank_says_what_it_waited_for)
{
    t.run.timeout_s = 1;
    run_one(&criterion_t_ranks, PROBE("while (dist_rank() == 1) pause();\n" REDUCE));
    assert_result(0, STATUS_TIMEOUT,
                  "rank 0 of 2: all_reduce #1 (sum, float32, 3 elements), waiting for rank 1");
    assert_result(0, STATUS_TIMEOUT,
                  "rank 0 of 3: all_reduce #1 (sum, float32, 3 elements), waiting for rank 1");
    assert_result(0, STATUS_TIMEOUT,
                  "rank 2 of 3: all_reduce #1 (sum, float32, 3 elements), waiting for rank 1");
}
END_TEST

/* ---- several criteria ---- */

START_TEST(a_supplied_function_saves_the_criterion_from_the_students)
{
    static const char *const own[] = {"return 1;", "exit(0);", "for (;;) pause();",
                                      "return *(volatile int *)0;"};
    char source[2000];
    snprintf(source, sizeof source,
             HEADERS "int average_gradients(struct module *model) { (void)model; %s }\n"
                     "int probe(int x) { return x * x + average_gradients(tanh_new()); }\n",
             own[_i]);
    t.run.timeout_s = 1;
    add(&criterion_t_supplied);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(source, ""), 0);
    assert_result(0, STATUS_PASSED, NULL);
    ck_assert_int_ne(t.results[1].status, STATUS_PASSED);
}
END_TEST

START_TEST(a_file_that_does_not_compile_costs_its_own_criteria)
{
    add(&criterion_t_probe);
    add(&criterion_t_pipeline);
    ck_assert_int_eq(run("int probe(int x) { return x * y; }\n", RIGHT), 0);
    assert_result(0, STATUS_FAILED, "assignment/data_parallel.c:1:");
    assert_result(1, STATUS_PASSED, NULL);
    char *log = temporary_read(t.results[0].log);
    ck_assert_ptr_nonnull(strstr(log, "assignment/data_parallel.c:1:"));
    free(log);
}
END_TEST

START_TEST(a_speedup_runs_last_and_is_measured)
{
    add(&criterion_t_speed);
    add(&criterion_t_probe);
    add(&criterion_t_pipeline);
    ck_assert_int_eq(run(RIGHT, RIGHT), 0);
    for (int i = 0; i < 3; i++)
        assert_result(i, STATUS_PASSED, NULL);
    ck_assert_str_eq(t.order[2], "t_speed");
    ck_assert_double_eq(json_real_value(json_object_get(t.results[0].measurements, "ratio")), 1.5);
}
END_TEST

START_TEST(a_speedup_without_its_section_is_not_run)
{
    add(&criterion_t_speed);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(PROBE("return x;"), RIGHT), 0);
    assert_result(0, STATUS_FAILED,
                  "not measured: a speedup counts only if every other criterion "
                  "of its section passed, and t_probe did not");
    ck_assert_ptr_null(t.results[0].measurements);
    ck_assert_str_eq(t.order[1], "t_speed");
}
END_TEST

START_TEST(what_is_blocked_is_left_alone)
{
    add(&criterion_t_probe);
    add(&criterion_t_pipeline);
    t.results[1].status = STATUS_BLOCKED;
    ck_assert_int_eq(run(RIGHT, "this is not C"), 0);
    assert_result(0, STATUS_PASSED, NULL);
    assert_result(1, STATUS_BLOCKED, NULL);
    ck_assert_int_eq(t.finished, 1);
}
END_TEST

/* ---- not the student's fault ---- */

START_TEST(without_a_compiler_nothing_is_scored)
{
    setenv("CC", "no-such-compiler", 1);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(RIGHT, ""), -1);
    ck_assert_ptr_nonnull(strstr(t.fault, "no-such-compiler"));
    ck_assert_int_eq(t.results[0].status, STATUS_PENDING);
}
END_TEST

START_TEST(a_criterion_without_a_verdict_is_a_fault)
{
    add(&criterion_t_broken);
    ck_assert_int_eq(run(RIGHT, ""), -1);
    ck_assert_ptr_nonnull(strstr(t.fault, "criterion t_broken"));
    ck_assert_int_eq(t.results[0].status, STATUS_PENDING);
}
END_TEST

START_TEST(a_log_that_cannot_be_written_is_a_fault)
{
    add(&criterion_t_probe);
    ck_assert_int_eq(mkdir(t.results[0].log, 0700), 0);
    ck_assert_int_eq(run(RIGHT, ""), -1);
    ck_assert_ptr_nonnull(strstr(t.fault, t.results[0].log));
}
END_TEST

START_TEST(an_interrupt_ends_everything)
{
    t.interrupt_after_first = true;
    add(&criterion_t_pipeline);
    add(&criterion_t_probe);
    ck_assert_int_eq(run(PROBE("for (;;) pause();"), RIGHT), -1);
    ck_assert_ptr_null(t.fault);
    assert_result(0, STATUS_PASSED, NULL);
    assert_result(1, STATUS_PENDING, NULL);
}
END_TEST

static Suite *run_suite(void)
{
    Suite *suite = suite_create("run");
    TCase *tests = tcase_create("run");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, a_verdict_is_right_whatever_the_student_does, 0,
                        sizeof cases / sizeof cases[0]);
#ifdef __SANITIZE_ADDRESS__
    tcase_add_loop_test(tests, a_sanitizer_names_the_students_line, 0,
                        sizeof sanitized / sizeof sanitized[0]);
#endif
    tcase_add_loop_test(tests, what_never_ends_is_a_timeout, 0, sizeof endless / sizeof endless[0]);
    tcase_add_test(tests, output_is_kept_in_the_log_and_capped);
    tcase_add_test(tests, compiler_warnings_are_in_the_log);
    tcase_add_test(tests, a_daemon_is_gone_afterwards);
    tcase_add_loop_test(tests, only_a_regular_file_is_looked_at, 0, 3);
    tcase_add_loop_test(tests, the_most_telling_rank_gives_the_reason, 0,
                        sizeof together / sizeof together[0]);
    tcase_add_test(tests, every_rank_says_what_it_waited_for);
    tcase_add_loop_test(tests, a_supplied_function_saves_the_criterion_from_the_students, 0, 4);
    tcase_add_test(tests, a_file_that_does_not_compile_costs_its_own_criteria);
    tcase_add_test(tests, a_speedup_runs_last_and_is_measured);
    tcase_add_test(tests, a_speedup_without_its_section_is_not_run);
    tcase_add_test(tests, what_is_blocked_is_left_alone);
    tcase_add_test(tests, without_a_compiler_nothing_is_scored);
    tcase_add_test(tests, a_criterion_without_a_verdict_is_a_fault);
    tcase_add_test(tests, a_log_that_cannot_be_written_is_a_fault);
    tcase_add_test(tests, an_interrupt_ends_everything);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(int argc, char **argv)
{
    if (strcmp(argv[0], "grade-criterion") == 0)
        return criterion_main(argc, argv);
    if (strcmp(argv[0], "grade-subject") == 0)
        return subject_main(argc, argv);
    return suite_run(run_suite());
}

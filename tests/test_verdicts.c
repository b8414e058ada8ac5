/* One criterion, end to end: whatever the student's function does to its process, the verdict is
 * right, the reason names the place, and nothing is left. */
#define _GNU_SOURCE
#include <signal.h>

#include "grading/fault.h"
#include "grading/worlds.h"
#include "runtime/built_with.h"
#include "tests/run.h"

static void observe_file(struct subject *s)
{
    (void)student(s, probe)(7);
    observe_int(s, access(subject_file(s, "left"), F_OK), "left");
}

static bool judge_left_file(struct judge *j)
{
    return judge_file(j, 1, 0, "left") ? true : judge_fail(j, "no file was left");
}

CRITERION(t_file, .section = "test", .points = 1, .file = "data_parallel.c",
          .observe = observe_file, .judge = judge_left_file)

static void observe_result(struct subject *s)
{
    long address = student(s, probe)(7);
    observe_int(s, *(volatile int *)address, "result");
}

CRITERION(t_result, .section = "test", .points = 1, .file = "data_parallel.c",
          .observe = observe_result, .judge = judge_probe)

static const struct {
    const char *source;
    const char *reason; /* NULL: passes */
} cases[] = {
    {RIGHT, NULL},
    {PROBE("printf(\"PASS\\n\"); fflush(stdout); return x * x;"), NULL},
    {PROBE("return x * x - 1;"), "the answer"},
    {PROBE("(void)x;"),
     "assignment/data_parallel.c does not compile:\nassignment/data_parallel.c:"},
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
#if BUILT_WITH_TSAN
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

#if BUILT_WITH_ASAN
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

START_TEST(a_bad_result_is_traced_to_its_function)
{
    run_one(&criterion_t_result, PROBE("return 0x1230 + x - 3;"));
    assert_result(0, STATUS_FAILED,
                  "SIGSEGV (address 0x1234) in the call of probe, or where its result was read");
}
END_TEST

/* Before student code runs, whatever happens is the machine's doing. */
START_TEST(a_subject_that_cannot_begin_is_the_machines_fault)
{
    volatile bool interrupted = false;
    struct worlds worlds = {
        .criterion = &criterion_t_probe,
        .executable = "/bin/false",
        .device = "cpu",
        .plugin = "",
        .library = "",
        .folder = temporary,
        .timeout_s = 10,
        .isolation = "process",
        .sanitizer = "",
    };
    worlds_observe(&worlds, &interrupted);
}
END_TEST

static Suite *verdicts_suite(void)
{
    Suite *suite = suite_create("verdicts");
    TCase *tests = tcase_create("verdicts");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, a_verdict_is_right_whatever_the_student_does, 0,
                        sizeof cases / sizeof cases[0]);
#if BUILT_WITH_ASAN
    tcase_add_loop_test(tests, a_sanitizer_names_the_students_line, 0,
                        sizeof sanitized / sizeof sanitized[0]);
#endif
    tcase_add_loop_test(tests, what_never_ends_is_a_timeout, 0, sizeof endless / sizeof endless[0]);
    tcase_add_test(tests, a_daemon_is_gone_afterwards);
    tcase_add_loop_test(tests, only_a_regular_file_is_looked_at, 0, 3);
    tcase_add_test(tests, a_bad_result_is_traced_to_its_function);
    tcase_add_exit_test(tests, a_subject_that_cannot_begin_is_the_machines_fault, EXIT_FAULT);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(int argc, char **argv)
{
    return run_main(argc, argv, verdicts_suite);
}

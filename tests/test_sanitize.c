/* What sanitizers print, in a line for the student; and the builds that --sanitize needs. */
#define _GNU_SOURCE
#include "grading/sanitize.h"

#include "runtime/scope.h"
#include "tests/suite.h"
#include "tests/temporary.h"

static const struct {
    const char *printed, *report; /* NULL: none */
} reports[] = {
    {"", NULL},
    {"42\nERROR: nothing is wrong\n", NULL},
    {"hello\n==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x604000000038 at pc "
     "0x7f1\nWRITE of size 1 at 0x604000000038 thread T0\n"
     "    #0 0x7f in probe assignment/data_parallel.c:9\n"
     "    #1 0x55 in observe_probe tests/run.h:18\n\n"
     "0x604000000038 is located 0 bytes to the right of 40-byte region\n"
     "allocated by thread T0 here:\n"
     "    #0 0x7f in malloc (libasan.so+0x1)\n"
     "    #1 0x7f in helper assignment/data_parallel.c:7\n"
     "    #2 0x7f in probe assignment/data_parallel.c:9\n\n"
     "SUMMARY: AddressSanitizer: heap-buffer-overflow assignment/data_parallel.c:9 in probe\n",
     "heap-buffer-overflow: WRITE of size 1 at assignment/data_parallel.c:9; allocated at "
     "assignment/data_parallel.c:7"},
    {"WARNING: ThreadSanitizer: data race (pid=7)\n"
     "  Write of size 4 at 0x7f00 by thread T2:\n"
     "    #0 turn ./assignment/pipeline.c:30 (student.so+0x1)\n"
     "    #1 work runtime/workers.c:80 (grade+0x1)\n\n"
     "  Previous write of size 4 at 0x7f00 by main thread:\n"
     "    #0 pipe_forward ./assignment/pipeline.c:41:7 (student.so+0x1)\n",
     "data race: Write of size 4 at assignment/pipeline.c:30; Previous write of size 4 at "
     "assignment/pipeline.c:41"},
    {"./assignment/finetune.c:12:5: runtime error: division by zero\n    #0 0x7f\n",
     "undefined behaviour: division by zero at assignment/finetune.c:12"},
    {"==7==ERROR: AddressSanitizer: stack-overflow on address 0x7\n    #0 0x7f (a.so+0x1)\n",
     "stack-overflow"},
    {"==7==ERROR: AddressSanitizer: attempting double-free on 0x6 in thread T0:\n",
     "attempting double-free"},
    {"==2==ERROR: AddressSanitizer: attempting free on address which was not malloc()-ed: "
     "0x6070000002e0 in thread T0\n"
     "    #0 0x7f in __interceptor_free "
     "../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:52\n"
     "    #1 0x7f in partition_indices assignment/data_parallel.c:34\n\n"
     "0x6070000002e0 is located 32 bytes inside of 80-byte region [0x6070000002c0,0x607000000310)\n"
     "allocated by thread T0 here:\n"
     "    #4 0x7f in partition_indices assignment/data_parallel.c:21\n\n"
     "SUMMARY: AddressSanitizer: bad-free asan_malloc_linux.cpp:52 in __interceptor_free\n",
     "attempting free on address which was not malloc()-ed at assignment/data_parallel.c:34; "
     "allocated at assignment/data_parallel.c:21"},
    {"ERROR: AddressSanitizer: ", ""},
    {"WARNING: ThreadSanitizer: data race (pid=1)\n    #0 f assignment/a.c:1\nassignment/.c:x\n",
     "data race at assignment/a.c:1"},
};

START_TEST(a_report_becomes_a_line)
{
    SCOPE;
    const char *report = sanitize_report(reports[_i].printed);
    if (reports[_i].report)
        ck_assert_str_eq(report, reports[_i].report);
    else
        ck_assert_ptr_null(report);
}
END_TEST

static const struct {
    const char *sanitizer, *said;
} missing[] = {{"address", "make VARIANT=asan"}, {"thread", "make VARIANT=tsan"}};

START_TEST(a_build_that_is_missing_is_asked_for)
{
    char *arguments[] = {(char *)"grade", NULL}, *problem = NULL;
    temporary_create();
    int become = sanitize_become(missing[_i].sanitizer, temporary, arguments, &problem);
    temporary_remove();
    if (become == 0) /* this is that build */
        return;
    ck_assert_ptr_nonnull(strstr(problem, missing[_i].said));
    free(problem);
}
END_TEST

START_TEST(flags_are_the_compilers)
{
    ck_assert_str_eq(sanitize_flags(""), "");
    ck_assert_ptr_nonnull(strstr(sanitize_flags("address"), "-fsanitize=address,undefined"));
    ck_assert_str_eq(sanitize_flags("thread"), "-fsanitize=thread");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sanitize");
    TCase *tests = tcase_create("sanitize");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_report_becomes_a_line, 0, sizeof reports / sizeof reports[0]);
    tcase_add_loop_test(tests, a_build_that_is_missing_is_asked_for, 0, 2);
    tcase_add_test(tests, flags_are_the_compilers);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

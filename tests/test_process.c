/* Children under control: what they get, what is kept of what they write, and that nothing of them
 * is left. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

#include "grading/process.h"
#include "tests/suite.h"
#include "tests/temporary.h"

/* A shell script as a child. */
static struct process script(const char *text)
{
    static const char *arguments[4];
    arguments[0] = "sh";
    arguments[1] = "-c";
    arguments[2] = text;
    return (struct process){
        .program = "sh", .arguments = arguments, .folder = temporary, .limits = {.wall_s = 30}};
}

static void run(struct process *process)
{
    ck_assert_int_eq(process_run(process), 0);
}

static void assert_output(const struct process *process, const char *expected)
{
    char *text = capture_text(&process->output);
    ck_assert_str_eq(text, expected);
    free(text);
}

static int exit_status(const struct process *process)
{
    ck_assert(WIFEXITED(process->wait_status));
    return WEXITSTATUS(process->wait_status);
}

/* ---- what a child gets ---- */

START_TEST(a_child_has_its_own_folder_and_environment)
{
    char expected[4 * sizeof temporary];
    setenv("SECRET", "of the grader", 1);
    struct process child =
        script("pwd; echo $HOME $TMPDIR; echo $LANG $OMP_NUM_THREADS "
               "$OPENBLAS_NUM_THREADS; echo [$SECRET]; echo to stderr >&2; exit 3");
    run(&child);
    snprintf(expected, sizeof expected, "%s\n%s %s\nC 1 1\n[]\nto stderr\n", temporary, temporary,
             temporary);
    assert_output(&child, expected);
    ck_assert_int_eq(exit_status(&child), 3);
    ck_assert(!process_succeeded(&child));
    process_close(&child);
}
END_TEST

START_TEST(stdin_is_empty)
{
    struct process child = script("cat; read line || echo end");
    run(&child);
    assert_output(&child, "end\n");
    process_close(&child);
}
END_TEST

START_TEST(no_other_descriptor_is_inherited)
{
    int open_here = fcntl(open("/dev/null", O_RDONLY), F_DUPFD, 37);
    ck_assert_int_ge(open_here, 37);
    struct process child =
        script("for i in 3 4 5 6 7 8 9 37 38; do "
               "(: <&$i) 2>/dev/null && readlink /proc/self/fd/$i; done; exit 0");
    run(&child);
    assert_output(&child, "/dev/null\n/dev/null\n/dev/null\n"); /* 3, 4 and 5 lead nowhere */
    process_close(&child);
}
END_TEST

START_TEST(descriptors_that_are_listed_arrive)
{
    int first = open(temporary_write("first", "one"), O_RDONLY);
    int second = open(temporary_write("second", "two"), O_RDONLY);
    struct process child = script("cat <&4; cat <&5");
    child.descriptors[0] = first;
    child.descriptors[1] = second;
    run(&child);
    assert_output(&child, "onetwo\n");
    process_close(&child);
}
END_TEST

START_TEST(a_child_leads_a_session_of_its_own)
{
    struct process child = script("[ $(ps -o sid= -p $$) = $$ ] && echo own");
    run(&child);
    assert_output(&child, "own\n");
    process_close(&child);
}
END_TEST

START_TEST(limits_hold)
{
    struct process child = script("ulimit -c; ulimit -n; head -c 100000 /dev/zero >file");
    child.limits.descriptors = 77;
    child.limits.file_bytes = 5000;
    run(&child);
    struct stat file;
    ck_assert_int_eq(stat(temporary_path("file"), &file), 0);
    ck_assert_int_eq(file.st_size, 5000);
    ck_assert_int_eq(strncmp(child.output.head, "0\n77\n", 5), 0);
    process_close(&child);
}
END_TEST

/* ---- starting that fails ---- */

START_TEST(a_program_that_cannot_run_is_told_from_one_that_fails)
{
    const struct {
        const char *program;
        int error;
    } cases[] = {
        {"/nonexistent/compiler", ENOENT}, {"no-such-compiler", ENOENT}, {temporary, EACCES}};
    struct process child = script("");
    child.program = cases[_i].program;
    run(&child);
    ck_assert_int_eq(child.start_error, cases[_i].error);
    ck_assert(!process_succeeded(&child));
    process_close(&child);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_a_start_error)
{
    struct process child = script("echo never");
    child.folder = "/nonexistent";
    run(&child);
    ck_assert_int_eq(child.start_error, ENOENT);
    process_close(&child);
}
END_TEST

/* ---- what is kept ---- */

START_TEST(a_flood_is_capped_and_the_cut_marked)
{
    struct process child = script("echo first; yes | head -c 3000000; echo last");
    run(&child);
    char *text = capture_text(&child.output);
    ck_assert_uint_eq(child.output.total, 3000000 + 6 + 5);
    ck_assert_uint_lt(strlen(text), CAPTURE_HEAD + CAPTURE_TAIL + 100);
    ck_assert_int_eq(strncmp(text, "first\ny\n", 8), 0);
    ck_assert_str_eq(text + strlen(text) - 7, "y\nlast\n");
    ck_assert_ptr_nonnull(strstr(text, "\n[... 2868939 bytes cut ...]\n"));
    free(text);
    process_close(&child);
}
END_TEST

START_TEST(bytes_of_any_kind_become_text)
{
    struct process child = script("printf 'a\\000b\\377c\\033[31mred\\033[0m'");
    run(&child);
    assert_output(&child, "a\xef\xbf\xbd"
                          "b\xef\xbf\xbd"
                          "cred\n");
    process_close(&child);
}
END_TEST

START_TEST(data_come_by_a_pipe_of_their_own)
{
    struct process child = script("echo noise; printf 12345 >&3; printf 678 >&3");
    child.data_limit = 8;
    run(&child);
    ck_assert_uint_eq(child.data.head_bytes, 8);
    ck_assert_mem_eq(child.data.head, "12345678", 8);
    ck_assert(!capture_overflowed(&child.data));
    process_close(&child);
}
END_TEST

START_TEST(too_much_data_are_noticed)
{
    struct process child = script("head -c 500000 /dev/zero >&3");
    child.data_limit = 1000;
    run(&child);
    ck_assert_uint_eq(child.data.head_bytes, 1000);
    ck_assert_uint_eq(child.data.total, 500000);
    ck_assert(capture_overflowed(&child.data));
    process_close(&child);
}
END_TEST

/* Written in pieces of every kind of size, against a copy of the whole. */
START_TEST(head_and_tail_are_right_whatever_the_pieces)
{
    static const size_t pieces[] = {1, 7, 4096, 65535, 65536, 65537, 131072, 200000};
    static char whole[700000];
    struct capture capture;
    capture_open(&capture);
    size_t n = 0, piece = pieces[_i];
    for (; n + piece <= sizeof whole && n < (_i < 2 ? 140000u : 600000u); n += piece) {
        for (size_t i = n; i < n + piece; i++)
            whole[i] = (char)('a' + (i * 7 + i / 1000) % 26);
        capture_add(&capture, whole + n, piece);
    }
    char *text = capture_text(&capture);
    ck_assert_uint_eq(capture.total, n);
    ck_assert_int_eq(memcmp(text, whole, CAPTURE_HEAD), 0);
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    ck_assert_int_eq(
        memcmp(text + strlen(text) - 1 - CAPTURE_TAIL, whole + n - CAPTURE_TAIL, CAPTURE_TAIL), 0);
    free(text);
    capture_close(&capture);
}
END_TEST

START_TEST(what_fits_is_kept_whole)
{
    char bytes[2 * CAPTURE_HEAD];
    memset(bytes, 'x', sizeof bytes);
    struct capture capture;
    capture_open(&capture);
    capture_add(&capture, bytes, sizeof bytes);
    ck_assert(!capture_overflowed(&capture));
    char *text = capture_text(&capture);
    ck_assert_uint_eq(strlen(text), sizeof bytes + 1);
    free(text);
    capture_add(&capture, "y", 1);
    ck_assert(capture_overflowed(&capture));
    capture_close(&capture);
}
END_TEST

/* ---- time ---- */

START_TEST(a_child_is_killed_when_its_time_is_over)
{
    struct process child = script("echo begun; exec sleep 1000");
    child.limits.wall_s = 0.3;
    run(&child);
    ck_assert(child.late);
    ck_assert_int_eq(WTERMSIG(child.wait_status), SIGKILL);
    assert_output(&child, "begun\n");
    process_close(&child);
}
END_TEST

START_TEST(a_child_that_has_used_up_its_processor_time_is_late)
{
    struct process child = script("while :; do :; done");
    child.limits.cpu_s = 1;
    run(&child);
    ck_assert(child.late);
    ck_assert_int_eq(WTERMSIG(child.wait_status), SIGXCPU);
    process_close(&child);
}
END_TEST

START_TEST(a_warned_child_may_end_by_itself)
{
    struct process child = script("trap 'echo told; exit 5' XCPU; while :; do :; done");
    child.limits = (struct process_limits){.wall_s = 0.5, .late_signal = SIGXCPU, .grace_s = 30};
    run(&child);
    ck_assert(child.late); /* all the same: it may have ended because it was told */
    ck_assert_int_eq(exit_status(&child), 5);
    assert_output(&child, "told\n");
    process_close(&child);
}
END_TEST

START_TEST(a_warned_child_that_goes_on_is_killed)
{
    struct process child = script("trap 'echo told' XCPU; while :; do :; done");
    child.limits = (struct process_limits){.wall_s = 0.5, .late_signal = SIGXCPU, .grace_s = 0.2};
    run(&child);
    ck_assert(child.late);
    assert_output(&child, "told\n");
    process_close(&child);
}
END_TEST

/* ---- nothing is left ---- */

/* With orphans adopted they have been reaped by now. Else init does it, in its own time. */
static bool is_gone(pid_t pid)
{
#if !defined(__linux__) || defined(POSIX_ONLY)
    while (kill(pid, 0) == 0)
        sched_yield();
#endif
    return kill(pid, 0) < 0 && errno == ESRCH;
}

static void assert_gone(const char *name)
{
    char *text = temporary_read(temporary_path(name));
    pid_t pid = atoi(text);
    ck_assert_int_gt(pid, 1);
    ck_assert_msg(is_gone(pid), "%s: process %d is still there", name, pid);
    free(text);
}

#define UNTIL_LEFT "while ! [ -s left ]; do :; done"

START_TEST(what_a_child_left_behind_is_killed)
{
    static const char *const leaving[] = {
        "sleep 1000 & echo $! >left",
#if defined(__linux__) && !defined(POSIX_ONLY)
        "setsid sh -c 'echo $$ >left; exec sleep 1000' & " UNTIL_LEFT,
        "(setsid sh -c 'sleep 1000 & echo $! >left; wait' &) ; " UNTIL_LEFT,
        "setsid sh -c 'trap \"\" TERM; echo $$ >left; exec >&- 2>&-; sleep 1000; :' & " UNTIL_LEFT,
#endif
    };
    if ((size_t)_i >= sizeof leaving / sizeof leaving[0])
        return;
    struct process child = script(leaving[_i]);
    run(&child);
    ck_assert_int_eq(exit_status(&child), 0);
    ck_assert_double_lt(child.seconds, 25); /* it holds the pipe open, and is not waited for */
    assert_gone("left");
    process_close(&child);
}
END_TEST

START_TEST(stopping_leaves_none)
{
    enum { MANY = 12 };
    struct processes *all = processes_new();
    struct process children[MANY];
    for (int i = 0; i < MANY; i++) {
        children[i] = script("sleep 1000 & echo $! >left.$$; echo ready; wait");
        ck_assert_int_eq(process_start(all, &children[i]), 0);
    }
    for (int i = 0; i < MANY; i++)
        while (children[i].output.total == 0)
            processes_wait(all);
    ck_assert_int_eq(processes_running(all), MANY);
    processes_stop(all);
    ck_assert_int_eq(processes_running(all), 0);
    processes_free(all);
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "left.%d", children[i].pid);
        assert_gone(name);
        ck_assert(children[i].stopped);
        process_close(&children[i]);
    }
}
END_TEST

/* ---- the loop ---- */

struct chain {
    struct processes *all;
    struct process process;
    int left;
};

static void start_next(struct process *process)
{
    struct chain *chain = process->context;
    process_close(process);
    if (--chain->left == 0)
        return;
    chain->process = script("exit 0");
    chain->process.ended = start_next;
    chain->process.context = chain;
    ck_assert_int_eq(process_start(chain->all, &chain->process), 0);
}

START_TEST(an_end_may_start_another)
{
    struct chain chain = {.all = processes_new(), .left = 21, .process.context = &chain};
    start_next(&chain.process);
    while (processes_running(chain.all))
        processes_wait(chain.all);
    ck_assert_int_eq(chain.left, 0);
    processes_free(chain.all);
}
END_TEST

static volatile sig_atomic_t signals_seen;

static void see_signal(int signal)
{
    (void)signal;
    signals_seen++;
}

START_TEST(a_signal_reaches_its_handler_and_ends_the_wait)
{
    signal(SIGTERM, see_signal);
    struct processes *all = processes_new();
    struct process child = script("kill -TERM $PPID; sleep 1000");
    child.limits.wall_s = 1000;
    ck_assert_int_eq(process_start(all, &child), 0);
    while (!signals_seen)
        processes_wait(all);
    processes_stop(all);
    processes_free(all);
    ck_assert_int_eq(signals_seen, 1);
    raise(SIGTERM); /* the handler is in its place again */
    ck_assert_int_eq(signals_seen, 2);
    process_close(&child);
}
END_TEST

static Suite *process_suite(void)
{
    Suite *suite = suite_create("process");
    TCase *tests = tcase_create("process");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, temporary_create, temporary_remove);
    tcase_add_test(tests, a_child_has_its_own_folder_and_environment);
    tcase_add_test(tests, stdin_is_empty);
    tcase_add_test(tests, no_other_descriptor_is_inherited);
    tcase_add_test(tests, descriptors_that_are_listed_arrive);
    tcase_add_test(tests, a_child_leads_a_session_of_its_own);
    tcase_add_test(tests, limits_hold);
    tcase_add_loop_test(tests, a_program_that_cannot_run_is_told_from_one_that_fails, 0, 3);
    tcase_add_test(tests, a_folder_that_is_not_there_is_a_start_error);
    tcase_add_test(tests, a_flood_is_capped_and_the_cut_marked);
    tcase_add_test(tests, bytes_of_any_kind_become_text);
    tcase_add_test(tests, data_come_by_a_pipe_of_their_own);
    tcase_add_test(tests, too_much_data_are_noticed);
    tcase_add_loop_test(tests, head_and_tail_are_right_whatever_the_pieces, 0, 8);
    tcase_add_test(tests, what_fits_is_kept_whole);
    tcase_add_test(tests, a_child_is_killed_when_its_time_is_over);
    tcase_add_test(tests, a_child_that_has_used_up_its_processor_time_is_late);
    tcase_add_test(tests, a_warned_child_may_end_by_itself);
    tcase_add_test(tests, a_warned_child_that_goes_on_is_killed);
    tcase_add_loop_test(tests, what_a_child_left_behind_is_killed, 0, 4);
    tcase_add_test(tests, stopping_leaves_none);
    tcase_add_test(tests, an_end_may_start_another);
    tcase_add_test(tests, a_signal_reaches_its_handler_and_ends_the_wait);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return suite_run(process_suite());
}

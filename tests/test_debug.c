/* test_debug.c - one criterion under a debugger: grade --debug, with gdb reading its commands from
 * a pipe as it would read them from a terminal; where there is only lldb, the least of it; without
 * either, the refusals alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/wait.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "grading/debug.h"
#include "grading/fault.h"
#include "grading/rubric.h"
#include "grading/submission.h"
#include "tests/alone.h"
#include "tests/suite.h"
#include "tests/temporary.h"

static char *root, *executable; /* the checkout, and the grade that is tested */

/* ---- a session ---- */

/* grade --debug, running: what is written to `to` is typed, `said` is what came from it so far. */
static struct session {
    pid_t pid;
    int to, from;
    char said[1 << 16];
    size_t bytes, seen;
} session;

enum { WORDS = 8, PATIENCE_MS = 60000 };

_Noreturn static void become_grade(int in, int out, const char *const *arguments)
{
    setpgid(0, 0);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    execv(arguments[0], (char *const *)arguments);
    _exit(127);
}

static void pipe_open(int ends[2])
{
    ck_assert_int_eq(pipe(ends), 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
}

/* begin - grade WORD... NULL */
static void begin(const char *word, ...)
{
    const char *arguments[WORDS + 2] = {executable, word};
    int in[2], out[2];
    va_list rest;
    va_start(rest, word);
    for (int i = 1; arguments[i]; i++)
        arguments[i + 1] = va_arg(rest, const char *);
    va_end(rest);
    pipe_open(in);
    pipe_open(out);
    session = (struct session){.to = in[1], .from = out[0], .pid = fork()};
    ck_assert_int_ge(session.pid, 0);
    if (session.pid == 0)
        become_grade(in[0], out[1], arguments);
    setpgid(session.pid, session.pid);
    close(in[0]);
    close(out[1]);
}

/* hear - what it says next. returns: false when it says no more */
static bool hear(void)
{
    struct pollfd from = {.fd = session.from, .events = POLLIN};
    ck_assert_msg(poll(&from, 1, PATIENCE_MS) == 1, "nothing more comes after: %s", session.said);
    ssize_t n =
        read(session.from, session.said + session.bytes, sizeof session.said - 1 - session.bytes);
    if (n > 0)
        session.bytes += (size_t)n;
    session.said[session.bytes] = '\0';
    return n > 0;
}

/* expect - wait until it has said this, after what was expected before */
static void expect(const char *text)
{
    const char *at;
    while (!(at = strstr(session.said + session.seen, text)))
        ck_assert_msg(hear(), "\"%s\" is not in: %s", text, session.said);
    session.seen = (size_t)(at - session.said) + strlen(text);
}

static void type(const char *line)
{
    ck_assert_int_eq(write(session.to, line, strlen(line)), (ssize_t)strlen(line));
}

/* finish - nothing more is typed. returns: its exit status, or -signal */
static int finish(void)
{
    int status;
    close(session.to);
    while (hear())
        ;
    close(session.from);
    ck_assert_int_eq(waitpid(session.pid, &status, 0), session.pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- what it leaves, and what it is given ---- */

/* Orphans of this process's descendants become its children, so that none can hide. */
static void enter_folder(void)
{
    temporary_create();
    ck_assert_int_eq(chdir(temporary), 0);
    ck_assert_int_eq(mkdir("tmp", 0777), 0);
    setenv("TMPDIR", temporary_path("tmp"), 1);
    setenv("HOME", temporary, 1); /* no .gdbinit of whoever runs the tests */
#ifdef __linux__
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
#endif
}

static void leave_folder(void)
{
    ck_assert(is_alone());
    ck_assert_msg(rmdir("tmp") == 0, "something is left in TMPDIR");
    ck_assert_msg(access("artifacts", F_OK) < 0, "a report was written");
    ck_assert_int_eq(chdir("/"), 0);
    temporary_remove();
}

static const char *reference(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/submissions/reference", root);
    return path;
}

static char *reference_text(const char *file)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/assignment/%s", reference(), file);
    return temporary_read(path);
}

/* write_submission - sub/: the reference solution with another data_parallel.c */
static const char *write_submission(const char *text)
{
    ck_assert_int_eq(mkdir("sub", 0777), 0);
    for (int i = 1; i < SUBMISSION_FILES; i++) {
        char name[64], *same = reference_text(submission_names[i]);
        snprintf(name, sizeof name, "sub/%s", submission_names[i]);
        temporary_write(name, same);
        free(same);
    }
    temporary_write("sub/data_parallel.c", text);
    return "sub";
}

/* The number of the first line of a text that holds `words`. */
static int line_of(const char *text, const char *words)
{
    int line = 1;
    const char *end = strstr(text, words);
    ck_assert_ptr_nonnull(end);
    for (; text < end; text++)
        line += *text == '\n';
    return line;
}

/* ---- what cannot be debugged ---- */

static const struct {
    const char *arguments[WORDS], *said;
} refusals[] = {
    {{"--debug", "gradient"},
     "grade: --debug 'gradient': is no criterion (--list names them); did you mean gradients?\n"},
    {{"--debug"}, "grade: --debug: needs a value, as in --debug ID\n"},
    {{"--debug", "gradients,updates"},
     "grade: --debug 'gradients,updates': is no criterion (--list names them)\n"},
    {{"--debug", "lora", "--debug", "adapter"},
     "grade: --debug 'adapter': is a second criterion, and one can be debugged at a time\n"},
    {{"--debug", "lora", "--output", "r.json"},
     "grade: --output: goes with grading, not with --debug lora\n"},
    {{"--only", "lora", "--debug", "lora"},
     "grade: --only: goes with grading, not with --debug lora\n"},
    {{"--timeout", "10", "--debug", "lora"},
     "grade: --timeout: goes with grading, not with --debug lora\n"},
};

START_TEST(what_makes_no_sense_is_refused)
{
    const char *const *a = refusals[_i].arguments;
    begin(a[0], a[1], a[2], a[3], NULL);
    ck_assert_int_eq(finish(), EXIT_USAGE);
    ck_assert_str_eq(session.said, refusals[_i].said);
}
END_TEST

START_TEST(a_debugger_is_asked_for)
{
    setenv("PATH", temporary_path("tmp"), 1);
    begin("--debug", "lora", NULL);
    ck_assert_int_eq(finish(), EXIT_USAGE);
    ck_assert_ptr_nonnull(
        strstr(session.said, "grade: --debug: no debugger is found: install gdb"));
}
END_TEST

START_TEST(what_this_device_cannot_run_is_refused)
{
    begin("--debug", "dp_performance", "--device", "cpu", "--submission", reference(), NULL);
    ck_assert_int_eq(finish(), EXIT_USAGE);
    ck_assert_str_eq(session.said,
                     "grade: --debug dp_performance: needs two V100 GPUs; this run is on the CPU "
                     "(--device sim has two)\n");
}
END_TEST

START_TEST(a_file_that_does_not_compile_has_failed)
{
    begin("--debug", "gradients", "--device", "cpu", "--submission",
          write_submission("int average_gradients(void)\n{\n    return nothing;\n}\n"), NULL);
    ck_assert_int_eq(finish(), 1);
    ck_assert_ptr_nonnull(
        strstr(session.said, "grade: assignment/data_parallel.c does not compile"));
    ck_assert_ptr_nonnull(strstr(session.said, "assignment/data_parallel.c:3:"));
}
END_TEST

/* The breakpoints are in functions that are there. */
START_TEST(every_criterion_calls_a_function_of_its_file)
{
    const struct criterion *const *all;
    for (int i = rubric_all(&all) - 1; i >= 0; i--) {
        char call[64], *text = reference_text(all[i]->file);
        ck_assert_msg(all[i]->calls[0] != NULL, "%s", all[i]->id);
        for (int k = 0; k < CALLS_MAX && all[i]->calls[k]; k++) {
            snprintf(call, sizeof call, "%s(", all[i]->calls[k]);
            ck_assert_msg(strstr(text, call) != NULL, "%s: %s", all[i]->id, call);
        }
        free(text);
    }
}
END_TEST

/* ---- under gdb ---- */

static const struct {
    const char *id, *device, *said, *function, *file, *line;
} stops[] = {
    {"gradients", "cpu", "gradients: rank 0 of 2 under gdb, on cpu, with --seed 7; the other waits",
     "average_gradients", "data_parallel.c", "struct named_tensors *parameters = "},
    {"schedule", "cpu", "schedule: rank 0 of 1 under gdb, on cpu, with --seed 7\n", "clock_cycles",
     "pipeline.c", "if (microbatches < 0"},
    {"updates", "sim", "updates: rank 0 of 2 under gdb, on sim", "train_step", "data_parallel.c",
     "optimizer_zero_grad(optimizer)"},
    {"forward", "sim", "forward: rank 0 of 1 under gdb, on sim", "pipe_forward", "pipeline.c",
     "struct tensors *batches = "},
};

/* In the student's function, with its file, line and text, its arguments and its caller; nobody
 * gives up meanwhile; and the program ends well. */
START_TEST(it_stops_in_the_function)
{
    char place[256], frame[128], *text = reference_text(stops[_i].file);
    begin("--debug", stops[_i].id, "--device", stops[_i].device, "--seed", "7", "--submission",
          reference(), NULL);
    expect(stops[_i].said);
    expect("Nothing is scored, and no report is written.\n");
    snprintf(place, sizeof place, "at assignment/%s:%d\n%d\t", stops[_i].file,
             line_of(text, stops[_i].line), line_of(text, stops[_i].line));
    expect(place);
    expect(stops[_i].line);
    snprintf(frame, sizeof frame, "#0  %s (", stops[_i].function);
    type("backtrace\n");
    expect(frame);
    expect("criteria/");
    type("print (double)wait_limit()\n");
    expect("2000000\n");
    type("print (int)memory_is_guarded()\n");
    expect("= 1\n");
    type("delete\ncontinue\n");
    expect("exited normally]");
    type("quit 5\n");
    ck_assert_int_eq(finish(), 5);
    free(text);
}
END_TEST

static const char prints_and_overflows[] =
    "#include \"assignment/data_parallel.h\"\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "struct partitions *partition_indices(int64_t size, int world_size, uint64_t seed)\n"
    "{\n"
    "    char *block = malloc(40);\n"
    "    printf(\"hello from rank %d\\n\", dist_rank());\n"
    "    block[40] = 0;\n"
    "    free(block);\n"
    "    return NULL;\n"
    "}\n";

START_TEST(damage_to_memory_stops_it)
{
    begin("--debug", "partitions", "--device", "cpu", "--submission",
          write_submission(prints_and_overflows), NULL);
    expect("Breakpoint 1, partition_indices");
    type("continue\n");
    expect("hello from rank 0\n");
    expect("student code wrote past the end of a block of 40 bytes, allocated at "
           "assignment/data_parallel.c:6 in partition_indices");
    expect("received signal SIGTRAP");
    type("backtrace\n");
    expect("partition_indices");
    expect("at assignment/data_parallel.c:9\n");
    ck_assert_int_eq(finish(), 0);
}
END_TEST

START_TEST(a_sanitizer_stops_it_at_what_it_finds)
{
    begin("--sanitize", "--debug", "partitions", "--device", "cpu", "--submission",
          write_submission(prints_and_overflows), NULL);
    expect("Breakpoint 1, partition_indices");
    type("continue\n");
    expect("heap-buffer-overflow");
    expect("received signal SIGABRT");
    type("backtrace\n");
    expect("in partition_indices (");
    expect("at assignment/data_parallel.c:8\n");
    ck_assert_int_eq(finish(), 0);
}
END_TEST

static void begin_in_gradients(void)
{
    begin("--debug", "gradients", "--device", "cpu", "--submission", reference(), NULL);
    expect("Breakpoint 1, average_gradients");
}

/* The debugger still answers. */
static void expect_an_answer_and_end(void)
{
    type("print 6 * 7\n");
    expect("= 42\n");
    ck_assert_int_eq(finish(), 0);
}

START_TEST(what_becomes_of_the_others_is_told)
{
    begin("--debug", "gradients", "--device", "cpu", "--submission",
          write_submission("#include \"assignment/data_parallel.h\"\n"
                           "#include <stdio.h>\n"
                           "#include <stdlib.h>\n"
                           "int average_gradients(struct module *model)\n"
                           "{\n"
                           "    if (dist_rank() == 1)\n"
                           "        puts(\"good bye\"), abort();\n"
                           "    return 0;\n"
                           "}\n"),
          NULL);
    expect("---- rank 1 of 2 was killed by SIGABRT after ");
    expect("having printed:\ngood bye\n");
    expect_an_answer_and_end();
}
END_TEST

START_TEST(control_c_is_for_the_debugger)
{
    begin_in_gradients();
    expect("(gdb) ");
    ck_assert_int_eq(kill(-session.pid, SIGINT), 0);
    expect("Quit\n");
    expect_an_answer_and_end();
}
END_TEST

START_TEST(nothing_is_left_by_one_that_is_ended)
{
    begin_in_gradients();
    ck_assert_int_eq(kill(session.pid, SIGTERM), 0);
    ck_assert_int_eq(finish(), 128 + SIGTERM);
    ck_assert_ptr_nonnull(strstr(session.said, "grade: ended by SIGTERM\n"));
}
END_TEST

#ifdef __linux__
/* The folder of one that is killed is left to the next. */
START_TEST(no_process_is_left_by_one_that_is_killed)
{
    begin_in_gradients();
    ck_assert_int_eq(kill(session.pid, SIGKILL), 0);
    ck_assert_int_eq(finish(), -SIGKILL);
    ck_assert(is_alone());
    temporary_remove();
    ck_assert_int_eq(mkdir(temporary, 0777), 0);
    ck_assert_int_eq(chdir(temporary), 0);
    ck_assert_int_eq(mkdir("tmp", 0777), 0);
}
END_TEST
#endif

START_TEST(it_stops_under_lldb)
{
    char place[64], *text = reference_text("data_parallel.c");
    begin("--debug", "gradients", "--device", "cpu", "--submission", reference(), NULL);
    expect("gradients: rank 0 of 2 under lldb, on cpu");
    expect("stop reason = breakpoint");
    snprintf(place, sizeof place, "at data_parallel.c:%d", line_of(text, "named_tensors *"));
    expect(place);
    expect("struct named_tensors *parameters = "); /* the source is found */
    type("breakpoint delete -f\n");
    expect("All breakpoints removed");
    type("continue\n");
    expect("exited with status = 0");
    type("quit\n");
    ck_assert_int_eq(finish(), 0);
    free(text);
}
END_TEST

static void add_tests_with_gdb(TCase *tests, const char *variant)
{
    if (strcmp(variant, "asan") == 0)
        tcase_add_test(tests, a_sanitizer_stops_it_at_what_it_finds);
    tcase_add_test(tests, what_this_device_cannot_run_is_refused);
    tcase_add_test(tests, a_file_that_does_not_compile_has_failed);
    tcase_add_loop_test(tests, it_stops_in_the_function, 0, sizeof stops / sizeof stops[0]);
    tcase_add_test(tests, damage_to_memory_stops_it);
    tcase_add_test(tests, what_becomes_of_the_others_is_told);
    tcase_add_test(tests, control_c_is_for_the_debugger);
    tcase_add_test(tests, nothing_is_left_by_one_that_is_ended);
#ifdef __linux__
    tcase_add_test(tests, no_process_is_left_by_one_that_is_killed);
#endif
}

int main(void)
{
    const char *variant = getenv("VARIANT") ? getenv("VARIANT") : "release";
    const char *debugger = debug_find();
    root = realpath(".", NULL);
    executable = format_or_fault("%s/build/%s/grade", root, variant);
    Suite *suite = suite_create("debug");
    TCase *tests = tcase_create("debug");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, enter_folder, leave_folder);
    tcase_add_loop_test(tests, what_makes_no_sense_is_refused, 0,
                        sizeof refusals / sizeof refusals[0]);
    tcase_add_test(tests, a_debugger_is_asked_for);
    tcase_add_test(tests, every_criterion_calls_a_function_of_its_file);
    if (debugger && strcmp(debugger, "gdb") == 0)
        add_tests_with_gdb(tests, variant);
    else if (debugger)
        tcase_add_test(tests, it_stops_under_lldb);
    else
        puts("neither gdb nor lldb is installed: what needs one is skipped");
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

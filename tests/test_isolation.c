/* Isolation: at each level that this machine has, as the user and, if that is root, as one without
 * rights, real student code attempts what it is not to do; then whatever is killed, nothing is
 * left.
 *
 * This program plays the executable's other roles when it is started under their names. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <utime.h>

#include "grading/isolation.h"
#include "grading/run.h"
#include "grading/workspace.h"
#include "runtime/built_with.h"
#include "tests/suite.h"
#include "tests/temporary.h"

enum { LEVELS = 3, NOBODY = 65534, SECONDS_TO_DIE = 20 };

/* ---- attempts, and at which levels they get through ---- */

enum { NO, YES, ANY /* too harmful to try, or as the machine has it */ };

static const struct attempt {
    const char *function;
    int through[LEVELS]; /* process, seccomp, namespaces */
} attempts[] = {
    {"start_a_thread", {YES, YES, YES}},
    {"signal_itself", {YES, YES, YES}},
    {"write_its_folder", {YES, YES, YES}},
    {"read_the_system", {YES, YES, YES}},
    {"start_a_process", {YES, NO, NO}},
    {"start_a_program", {YES, NO, NO}},
    {"signal_its_parent", {YES, NO, NO}},
    {"signal_a_stranger", {YES, NO, NO}},
    {"signal_everyone", {ANY, NO, NO}},
    {"see_a_stranger", {ANY, ANY, NO}},
    {"write_outside", {ANY, ANY, NO}},
    {"change_outside", {ANY, ANY, NO}},
    {"remove_outside", {ANY, ANY, NO}},
    {"read_what_is_supplied", {YES, YES, NO}},
    {"leave_shared_memory", {ANY, ANY, NO}},
    {"open_a_socket", {YES, NO, NO}},
    {"listen_to_others", {YES, NO, NO}},
    {"change_a_terminal", {YES, NO, NO}},
    {"fill_the_disk", {ANY, ANY, NO}},
#if !BUILT_WITH_ASAN && !BUILT_WITH_TSAN
    {"take_all_memory", {NO, NO, NO}},
#endif
#ifdef __linux__
    {"open_its_parents_memory", {ANY, NO, NO}},
    {"take_memory_in_files", {YES, NO, NO}},
    {"start_a_process_another_way", {YES, NO, NO}},
    {"trace_its_parent", {ANY, NO, NO}},
    {"read_its_parents_memory", {ANY, NO, NO}},
    {"direct_signals_to_its_parent", {YES, NO, NO}},
    {"outlive_its_parent", {YES, NO, NO}},
    {"mount_something", {ANY, NO, NO}},
    {"leave_its_namespaces", {ANY, NO, NO}},
    {"leave_a_segment", {YES, NO, NO}},
    {"use_a_ring", {ANY, NO, NO}},
    {"slow_others_down", {YES, NO, NO}},
    {"reschedule_others", {YES, NO, NO}},
    {"step_back_itself", {YES, YES, YES}},
    {"see_a_network", {ANY, ANY, NO}},
#endif
};
enum { ATTEMPTS = sizeof attempts / sizeof attempts[0] };

/* Landlock guards the file system where there is no namespace for mounts. */
static bool has_landlock(void)
{
#ifdef SYS_landlock_create_ruleset
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 1;
#else
    return false;
#endif
}

static const char *const guarded_by_landlock[] = {"write_outside", "remove_outside",
                                                  "leave_shared_memory"};

static int expected(const struct attempt *attempt, enum isolation_level level)
{
    for (int i = 0; i < 3; i++)
        if (level == ISOLATION_SECCOMP && has_landlock() &&
            strcmp(attempt->function, guarded_by_landlock[i]) == 0)
            return NO;
    return attempt->through[level];
}

static void observe_attempts(struct subject *s, enum isolation_level level)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        if (expected(&attempts[i], level) == ANY)
            continue;
        int (*try)(void) = (int (*)(void))subject_function(s, attempts[i].function);
        observe_int(s, try(), "%s", attempts[i].function);
    }
}

static bool judge_attempts(struct judge *j, enum isolation_level level)
{
    for (int i = 0; i < ATTEMPTS; i++)
        if (expected(&attempts[i], level) != ANY &&
            !expect_int(j, judge_observations(j, 1, 0), attempts[i].function,
                        expected(&attempts[i], level), "%s", attempts[i].function))
            return false;
    return true;
}

#define ATTEMPTS_AT(name, level)                                                                   \
    static void observe_##name(struct subject *s)                                                  \
    {                                                                                              \
        observe_attempts(s, level);                                                                \
    }                                                                                              \
    static bool judge_##name(struct judge *j)                                                      \
    {                                                                                              \
        return judge_attempts(j, level);                                                           \
    }                                                                                              \
    CRITERION(t_##name, .section = "test", .points = 1, .file = "data_parallel.c",                 \
              .observe = observe_##name, .judge = judge_##name)
ATTEMPTS_AT(process, ISOLATION_PROCESS)
ATTEMPTS_AT(seccomp, ISOLATION_SECCOMP)
ATTEMPTS_AT(namespaces, ISOLATION_NAMESPACES)
static const struct criterion *const criteria[] = {&criterion_t_process, &criterion_t_seccomp,
                                                   &criterion_t_namespaces};

/* ---- and a criterion that only wants to be run ---- */

int probe(int x);

static void observe_probe(struct subject *s)
{
    observe_int(s, student(s, probe)(7), "answer");
}

static bool judge_probe(struct judge *j)
{
    return expect_int(j, judge_observations(j, 2, 0), "answer", 49, "the answer") &&
           expect_int(j, judge_observations(j, 2, 1), "answer", 49, "the answer");
}

CRITERION(t_probe, .section = "test", .points = 1, .file = "data_parallel.c", .worlds = {2},
          .observe = observe_probe, .judge = judge_probe)

/* ---- running ---- */

static struct result result;
static volatile bool interrupted;
static char *fault_text;

static void on_finished(void *context, struct result *finished)
{
    ck_assert_ptr_null(context);
    ck_assert_ptr_eq(finished, &result);
}

static void become_nobody(void)
{
    ck_assert_int_eq(setgroups(0, NULL), 0);
    ck_assert_int_eq(setgid(NOBODY), 0);
    ck_assert_int_eq(setuid(NOBODY), 0);
}

/* Every test is a process of its own: what is set here is set for it alone. The loops go over the
 * levels, and for root once more as nobody.
 * returns: false if this level or user cannot be had here, so that there is nothing to test */
static bool begin_as(int loop, enum isolation_level *level)
{
    char home[4096];
    ck_assert_ptr_nonnull(realpath(".", home));
    *level = (enum isolation_level)(loop % LEVELS);
    if (loop >= LEVELS) {
        if (geteuid() != 0)
            return false;
        become_nobody();
        if (access(home, R_OK) != 0)
            return false; /* the checkout, or a folder around it, is root's alone */
    }
    setenv("GRADE_ISOLATION", isolation_name(*level), 1);
    setenv("ASAN_OPTIONS", "allocator_may_return_null=1", 1);
    temporary_create();
    ck_assert_int_eq(mkdir(temporary_path("run"), 0700), 0);
    bool reached = isolation_probe(home, temporary_path("run")) == *level;
    if (!reached)
        temporary_remove();
    return reached;
}

static void run(const struct criterion *criterion, const char *source, double timeout_s)
{
    static const char *const names[] = {"data_parallel.c", "pipeline.c", "finetune.c"};
    char home[4096], sources[3][4200], folder[4200];
    ck_assert_ptr_nonnull(realpath(".", home));
    for (int i = 0; i < 3; i++)
        strcpy(sources[i], temporary_write(names[i], i == 0 ? source : ""));
    strcpy(folder, temporary_path("run"));
    result = (struct result){.criterion = criterion, .log = (char *)temporary_path("log")};
    struct run all = {.home = home,
                      .folder = folder,
                      .sources = {sources[0], sources[1], sources[2]},
                      .device = "cpu",
                      .seed = 1,
                      .timeout_s = timeout_s,
                      .count = 1,
                      .results = &result};
    run_criteria(&all, on_finished, NULL, &interrupted, &fault_text);
}

static void assert_nothing_left(void)
{
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    ck_assert_int_ne(access(temporary_path("run/run-t_probe"), F_OK), 0);
}

static void assert_passed(void)
{
    ck_assert_msg(!fault_text, "%s", fault_text);
    ck_assert_msg(result.status == STATUS_PASSED, "%s", result.reason ? result.reason : "");
}

static char *attempts_source(void)
{
    char home[4096], *text = temporary_read("tests/isolation_attempts.c"), *source;
    ck_assert_ptr_nonnull(realpath(".", home));
    ck_assert_int_gt(asprintf(&source,
                              "#define OUTSIDE \"%s\"\n#define STRANGER %d\n#define SUPPLIED "
                              "\"%s/" BUILD_FOLDER "/criteria/supplied/average_gradients.o\"\n%s",
                              temporary, getpid(), home, text),
                     0);
    free(text);
    return source;
}

START_TEST(student_code_gets_through_where_it_may)
{
    enum isolation_level level;
    if (!begin_as(_i, &level))
        return;
    char *source = attempts_source();
    temporary_write("canary", "sing\n");
    run(criteria[level], source, 60);
    assert_passed();
    char *canary = temporary_read(temporary_path("canary"));
    ck_assert_str_eq(canary, "sing\n");
    free(canary);
    assert_nothing_left();
    temporary_remove();
    free(source);
}
END_TEST

START_TEST(ranks_reach_each_other)
{
    enum isolation_level level;
    if (!begin_as(_i, &level))
        return;
    run(&criterion_t_probe,
        "#include \"assignment/data_parallel.h\"\nint probe(int x) {\n"
        "struct tensor *one = tensor_full(SHAPE(3), 1, FLOAT32, CPU);\n"
        "(void)dist_all_reduce(one, DIST_SUM);\nreturn tensor_get(one, 0) == 2 ? x * x : -1; }",
        60);
    assert_passed();
    assert_nothing_left();
    temporary_remove();
}
END_TEST

/* ---- what the compiler reads ---- */

#define ANSWER "int probe(int x);\nint probe(int x) { return x * x; }\n"

static const struct {
    const char *source;
    bool passes[LEVELS];
    const char *reason; /* beginning of what differs by level */
} readings[] = {
    {"#include <stdio.h>\n#include <math.h>\n#include \"assignment/pipeline.h\"\n"
     "#include \"runtime/lora.h\"\n#include \"data_parallel.h\"\n" ANSWER,
     {true, true, true},
     NULL},
    {"#include \"/etc/passwd\"\n" ANSWER, {0}, "/etc/passwd"},
    {"#include <../../etc/passwd>\n" ANSWER, {0}, "etc/passwd"},
    {"#include \"/dev/zero\"\n" ANSWER, {0}, "does not compile:\ncc1: out of memory"},
    {"#include \"criteria/supplied/average_gradients.c\"\n" ANSWER, {0}, "average_gradients.c"},
    {"#include \"../criteria/fixture.h\"\n" ANSWER, {0}, "fixture.h"},
    {"#include \"grading/process.h\"\n" ANSWER, {0}, "process.h"},
    {"# 1 \"/usr/include/x.h\" 1 3\n#include \"criteria/criterion.h\"\n" ANSWER, {0}, "x.h"},
    {"__asm__(\".section .note,\\\"\\\"\\n.incbin \\\"/etc/passwd\\\"\\n.text\");\n" ANSWER,
     {true, true, false},
     "/etc/passwd"},
    {"#if __has_include(\"/etc/passwd\") || __has_include(\"criteria/criterion.h\")\n"
     "#error there\n#endif\n" ANSWER,
     {false, false, true},
     "there"},
};
enum { READINGS = sizeof readings / sizeof readings[0] };

START_TEST(the_compiler_reads_headers_alone)
{
    enum isolation_level level;
    if (!begin_as(_i / READINGS, &level))
        return;
    int i = _i % READINGS;
    run(&criterion_t_probe, readings[i].source, 60);
    if (readings[i].passes[level]) {
        assert_passed();
    } else {
        ck_assert_msg(!fault_text, "%s", fault_text);
        ck_assert_int_eq(result.status, STATUS_FAILED);
        ck_assert_msg(strstr(result.reason, readings[i].reason), "%s", result.reason);
        char *log = temporary_read(temporary_path("log"));
        ck_assert_ptr_null(strstr(log, "root:"));
        free(log);
    }
    temporary_remove();
}
END_TEST

/* ---- whatever is killed ---- */

#ifdef __linux__
/* How many processes have this in their command line; with a role, how many of those that play it,
 * and one of them. */
static int count_processes(const char *text, const char *role, pid_t *one)
{
    int n = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(all));) {
        char path[300], line[8192] = "";
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        FILE *file = atoi(entry->d_name) > 0 ? fopen(path, "r") : NULL;
        size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
        if (file)
            fclose(file);
        if (!memmem(line, length, text, strlen(text)) || (role && strcmp(line, role) != 0))
            continue;
        n++;
        if (one)
            *one = atoi(entry->d_name);
    }
    closedir(all);
    return n;
}

static void wait_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
}

static void assert_all_die(const char *text)
{
    for (int i = 0; i < SECONDS_TO_DIE * 100; i++) {
        if (count_processes(text, NULL, NULL) == 0)
            return;
        wait_briefly();
    }
    ck_abort_msg("something is left of %s", text);
}

/* In how many subjects student code runs: it leaves a file, named as no other run's is, in a folder
 * that only its own process may see. */
static int count_arrivals(void)
{
    char pattern[300];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "/proc/[0-9]*/cwd/%s", basename(temporary));
    glob(pattern, 0, NULL, &found);
    int n = (int)found.gl_pathc;
    globfree(&found);
    return n;
}

/* A run in a process of its own. returns: its process, when student code runs in all its subjects
 */
static pid_t begin_endless_run(void)
{
    char source[600];
    snprintf(source, sizeof source,
             "#include <stdio.h>\n#include <unistd.h>\nint probe(int x);\n"
             "int probe(int x) { fclose(fopen(\"%s\", \"w\")); for (;;) pause(); return x; }\n",
             basename(temporary));
    pid_t grader = fork();
    if (grader == 0) {
        run(&criterion_t_probe, source, 600);
        _exit(fault_text ? 70 : 0);
    }
    while (count_arrivals() < 2)
        wait_briefly();
    return grader;
}

static const char *const victims[] = {NULL, "grade-criterion", "grade-subject"};
enum { VICTIMS = 3 };

START_TEST(nothing_is_left_whoever_is_killed)
{
    enum isolation_level level;
    if (!begin_as(_i / VICTIMS, &level))
        return;
    int status;
    const char *role = victims[_i % VICTIMS];
    pid_t grader = begin_endless_run(), victim = grader;
    if (role)
        count_processes(temporary, role, &victim);
    kill(victim, SIGKILL);
    ck_assert_int_eq(waitpid(grader, &status, 0), grader);
    assert_all_die(temporary);
    if (role)
        ck_assert_int_eq(WEXITSTATUS(status), role == victims[1] ? 70 : 0);
    temporary_remove();
}
END_TEST
#endif

START_TEST(folders_of_killed_runs_are_swept)
{
    char path[4200], living[4200];
    int ends[2];
    temporary_create();
    setenv("TMPDIR", temporary, 1);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *folder = workspace_create();
        _exit(write(ends[1], folder, strlen(folder) + 1) < 0);
    }
    ck_assert_int_gt(read(ends[0], path, sizeof path), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    pid = fork();
    if (pid == 0) {
        const char *folder = workspace_create();
        if (write(ends[1], folder, strlen(folder) + 1) > 0)
            for (;;)
                pause();
    }
    ck_assert_int_gt(read(ends[0], living, sizeof living), 0);
    ck_assert_int_eq(utime(path, &(struct utimbuf){1, 1}), 0);
    ck_assert_int_eq(utime(living, &(struct utimbuf){1, 1}), 0);
    ck_assert_ptr_nonnull(workspace_create());
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(access(living, F_OK), 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    workspace_remove();
    temporary_remove();
}
END_TEST

/* ---- levels ---- */

START_TEST(levels_have_names)
{
    for (int level = 0; level < LEVELS; level++)
        ck_assert_int_eq(isolation_parse(isolation_name((enum isolation_level)level)), level);
    ck_assert_int_eq(isolation_parse("no such level"), ISOLATION_PROCESS);
    ck_assert_int_eq(isolation_parse(isolation_name(ISOLATION_NONE)), ISOLATION_NONE);
}
END_TEST

START_TEST(a_run_that_grades_is_never_without)
{
    setenv("GRADE_ISOLATION", isolation_name(ISOLATION_NONE), 1);
    ck_assert_int_eq(isolation_probe(".", "."), ISOLATION_PROCESS);
}
END_TEST

int main(int argc, char **argv)
{
    if (strcmp(argv[0], "grade-criterion") == 0)
        return criterion_main(argc, argv);
    if (strcmp(argv[0], "grade-subject") == 0)
        return subject_main(argc, argv);
    Suite *suite = suite_create("isolation");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, levels_have_names);
    tcase_add_test(tests, a_run_that_grades_is_never_without);
    tcase_add_loop_test(tests, student_code_gets_through_where_it_may, 0, 2 * LEVELS);
    tcase_add_loop_test(tests, ranks_reach_each_other, 0, 2 * LEVELS);
    tcase_add_loop_test(tests, the_compiler_reads_headers_alone, 0, LEVELS * READINGS);
#ifdef __linux__
    tcase_add_loop_test(tests, nothing_is_left_whoever_is_killed, 0, LEVELS * VICTIMS);
#endif
    tcase_add_test(tests, folders_of_killed_runs_are_swept);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

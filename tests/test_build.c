/* Builds of a student's file: what a library contains, whose function is called, what went wrong
 * and whose fault it was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>

#include "criteria/supplied.h"
#include "grading/build.h"
#include "grading/build_includes.h"
#include "runtime/nn.h"
#include "runtime/scope.h"
#include "tests/suite.h"
#include "tests/temporary.h"

static const char *const compilers[] = {"gcc", "clang"};
enum { COMPILERS = 2 };

static struct build build;
static struct processes *all;
static int finished;
static const char *supplied = "average_gradients";

static void on_finished(struct library *library)
{
    ck_assert_ptr_eq(library->build, &build);
    finished++;
}

static void begin(void)
{
    temporary_create();
    all = processes_new();
}

static void end(void)
{
    build_close(&build);
    processes_free(all);
    temporary_remove();
}

/* A build of `source` as data_parallel.c: the plain library, and one with average_gradients
 * supplied. */
static void build_source(const char *source)
{
    static char home[4096], copy[8192], folder[8192];
    ck_assert_ptr_nonnull(realpath(".", home));
    strcpy(copy, temporary_write("copy of the file.c", source));
    strcpy(folder, temporary_path("build"));
    build = (struct build){.home = home,
                           .source = copy,
                           .file = "data_parallel.c",
                           .folder = folder,
                           .sanitizer = "",
                           .libraries = {{.supplied = NULL}, {.supplied = supplied}},
                           .library_count = 2,
                           .finished = on_finished};
    finished = 0;
    build_start(&build, all);
    while (processes_running(all))
        processes_wait(all);
}

static bool has_compiler(const char *name)
{
    char command[64];
    snprintf(command, sizeof command, "command -v %s >/dev/null", name);
    setenv("CC", name, 1);
    return system(command) == 0;
}

static void assert_built(void)
{
    ck_assert_msg(!build.fault, "%s", build.fault);
    ck_assert_msg(!build.reason, "%s\n%s", build.reason, build.log);
    ck_assert(build.libraries[0].ready && build.libraries[1].ready);
    ck_assert_int_eq(finished, 2);
}

typedef int function_of_model(struct module *model);

static function_of_model *function(int library, const char *name)
{
    void *handle = dlopen(build.libraries[library].path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    ck_assert(supplied_connect(handle, supplied) == (library == 1));
    void *symbol = dlsym(handle, name);
    ck_assert_msg(symbol != NULL, "%s", dlerror());
    function_of_model *found;
    memcpy(&found, &symbol, sizeof found);
    return found;
}

/* ---- the supplied function takes the student's place ---- */

/* The student's own average_gradients gives 7, or does worse; the supplied one gives 0 for a model
 * without parameters. The call is within one file, at every level of optimisation. */
#define STUDENT(attributes, body)                                                                  \
    "#include \"assignment/data_parallel.h\"\n" attributes                                         \
    "static int helper(int x) { return x; }\n"                                                     \
    "int average_gradients(struct module *model) { (void)model; " body " }\n"                      \
    "int step(struct module *model) { return 100 + average_gradients(model); }\n"

static const struct {
    const char *source;
    bool callable; /* the student's own function returns 7 */
} overridden[] = {
    {STUDENT("", "return helper(7);"), true},
    {STUDENT("#pragma GCC optimize(\"O3\")\n", "return helper(7);"), true},
    {STUDENT("#pragma GCC optimize(\"O0\")\n", "return helper(7);"), true},
    {STUDENT("__attribute__((pure)) ", "return helper(7);"), true},
    {STUDENT("", "for (;;) helper(1);"), false},
    {STUDENT("", "return *(volatile int *)0 + helper(1);"), false},
    {STUDENT("#include <stdlib.h>\n", "exit(helper(0));"), false},
    {STUDENT("", "__builtin_unreachable(); return helper(0);"), false},
};
enum { OVERRIDDEN = sizeof overridden / sizeof overridden[0] };

START_TEST(the_supplied_function_is_called_within_the_file)
{
    const char *source = overridden[_i % OVERRIDDEN].source;
    if (!has_compiler(compilers[_i / OVERRIDDEN]))
        return;
    build_source(source);
    assert_built();
    SCOPE;
    struct module *model = tanh_new();
    ck_assert_int_eq(function(1, "step")(model), 100);
    ck_assert_int_eq(function(1, "average_gradients")(model), 0);
    if (overridden[_i % OVERRIDDEN].callable) {
        ck_assert_int_eq(function(0, "step")(model), 107);
        ck_assert_int_eq(function(0, "average_gradients")(model), 7);
    }
}
END_TEST

/* Whatever the student calls a function, it is found in the file first: not in libc, not here. The
 * supplied function does not find it. */
START_TEST(names_of_others_are_the_students_within_the_file)
{
    if (!has_compiler(compilers[_i]))
        return;
    build_source("#include \"assignment/data_parallel.h\"\n"
                 "double tensor_item(const struct tensor *x) { (void)x; return 42; }\n"
                 "int atoi(const char *text) { (void)text; return 43; }\n"
                 "struct named_tensors *module_named_parameters(const struct module *model)"
                 "{ (void)model; return NULL; }\n"
                 "int average_gradients(struct module *model)"
                 "{ return module_named_parameters(model) ? 0 : 7; }\n"
                 "int sum(struct module *model) {"
                 "  return (int)tensor_item(NULL) + atoi(\"1\") + average_gradients(model); }\n");
    assert_built();
    SCOPE;
    struct module *model = tanh_new();
    ck_assert_int_eq(function(0, "sum")(model), 92);
    ck_assert_int_eq(function(1, "sum")(model), 85);
    ck_assert_int_eq(function(1, "average_gradients")(model), 0);
    ck_assert_int_eq(atoi("1"), 1);
}
END_TEST

START_TEST(the_file_goes_by_the_name_that_the_student_knows)
{
    if (!has_compiler(compilers[_i]))
        return;
    build_source("const char name[] = __FILE__;\nvoid unused(void) { int x; }\n");
    assert_built();
    ck_assert_ptr_nonnull(strstr(build.log, "assignment/data_parallel.c:2:"));
    ck_assert_ptr_null(strstr(build.log, temporary));
    void *handle = dlopen(build.libraries[0].path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(handle);
    ck_assert_str_eq(dlsym(handle, "name"), "assignment/data_parallel.c");
}
END_TEST

/* ---- the student's faults ---- */

START_TEST(the_first_errors_are_the_reason)
{
    if (!has_compiler(compilers[_i]))
        return;
    build_source(
        "int ok(void) { return 0; }\n"
        "int bad(void) { return missing; }\n"
        "int worse(void) { return 1 }\n"
        "int a(void) { return x1; } int b(void) { return x2; } int c(void) { return x3; }\n");
    ck_assert_ptr_null(build.fault);
    ck_assert_ptr_nonnull(build.reason);
    ck_assert_ptr_nonnull(strstr(build.reason, "assignment/data_parallel.c does not compile:\n"
                                               "assignment/data_parallel.c:2:24: error: "));
    ck_assert_ptr_nonnull(strstr(build.reason, "missing"));
    ck_assert_ptr_null(strstr(build.reason, "x3"));
    ck_assert_ptr_nonnull(strstr(build.log, "x3"));
    ck_assert(!build.libraries[0].ready && !build.libraries[1].ready);
    ck_assert_int_eq(finished, 2);
}
END_TEST

/* Texts that compile to nothing useful, or to very much. */
START_TEST(reasons_have_an_end)
{
    SCOPE;
    char *word = scope_alloc(10001);
    memset(word, 'x', 10000);
    has_compiler("cc");
    build_source(scope_printf("#error %s\n", word));
    ck_assert_ptr_nonnull(strstr(build.reason, "#error xxx"));
    ck_assert_ptr_nonnull(strstr(build.reason, "xxx..."));
    ck_assert_int_lt(strlen(build.reason), 5000);
}
END_TEST

START_TEST(hostile_sources_are_the_students_fault)
{
    static const char *const sources[] = {
        "\177ELF\1\2\3",
        "#include \"data_parallel.c\"\n",
        "#include \"/dev/zero\"\n",
        "#include \"assignment/nothing.h\"\n",
        "#error No space left on device\n",
        "#line 1 \"elsewhere\"\n#error No space left on device\n",
        "__asm__(\".error \\\"cannot execute\\\"\");\n",
        "__asm__(\"cannot execute = 1\");\n",
        "char big[1UL << 40] = {1};\n",
    };
    has_compiler("cc");
    build_source(sources[_i]);
    ck_assert_msg(!build.fault, "%s", build.fault);
    ck_assert_ptr_nonnull(build.reason);
    ck_assert_ptr_nonnull(strstr(build.reason, "assignment/data_parallel.c"));
    ck_assert_int_eq(finished, 2);
}
END_TEST

/* A message that points into a file which was not included would show its lines. */
START_TEST(files_that_are_only_named_are_not_shown)
{
    static const char *const sources[] = {
        "#line 1 \"%s\"\nint x = y;\n",
        "#line 1 \"../secret:1:2.h\"\nint x = y;\n",
        "__asm__(\".include \\\"%s\\\"\");\n",
    };
    SCOPE;
    has_compiler("cc");
    const char *secret = temporary_write("secret:1:2.h", "sesame\n");
    build_source(scope_printf(sources[_i], secret));
    ck_assert_ptr_nonnull(strstr(build.reason, "secret:1:2.h, which is no header"));
    ck_assert_ptr_null(strstr(build.reason, "sesame"));
    ck_assert_ptr_null(strstr(build.log, "sesame"));
    ck_assert(!build.libraries[0].ready && !build.libraries[1].ready);
}
END_TEST

START_TEST(places_that_are_nowhere_are_right)
{
    if (!has_compiler(compilers[_i]))
        return;
    build_source("#line 7 \"table.y\"\nvoid unused(void) { int x; }\n"
                 "#line 1 \"/usr/include/stdio.h\"\nvoid unused_too(void) { int x; }\n");
    assert_built();
    ck_assert_ptr_nonnull(strstr(build.log, "table.y:7:"));
}
END_TEST

/* Files as the compiler lists them, and whether they may be read. A link is what it leads to. */
static const struct {
    const char *file, *link; /* link: NULL for none; it leads to the file */
    bool good;
} headers[] = {
    {"usr/include/errno.h", NULL, true},
    {"usr/lib/linux/uapi/x86/asm/errno.h", "usr/include/asm/errno.h", true},
    {"etc/passwd", NULL, false},
    {"etc/passwd", "usr/include/asm/errno.h", false},
    {"etc/uapi/passwd", NULL, false},
};

START_TEST(headers_of_the_system_are_known)
{
    SCOPE;
    const char *file = headers[_i].file, *link = headers[_i].link, *foreign;
    const char *make = "cd '%s' && mkdir -p usr/include/asm $(dirname %s) && touch %s && "
                       "ln -s '%s/%s' ./%s";
    ck_assert_int_eq(
        system(scope_printf(make, temporary, file, file, temporary, file, link ? link : "unused")),
        0);
    const char *said = scope_printf(". %s\n", temporary_path(link ? link : file));
    free(includes_take(said, "/nonexistent", "/nonexistent", &foreign));
    ck_assert_int_eq(!foreign, headers[_i].good);
}
END_TEST

/* ---- the machine's faults ---- */

START_TEST(a_compiler_that_cannot_run_is_the_machines_fault)
{
    static const char *const cases[][2] = {
        {"no-such-compiler", "cannot run the compiler no-such-compiler: No such file"},
        {"/dev/null", "cannot run the compiler /dev/null: Permission denied"},
        {"true", "the compiler true wrote no "},
    };
    setenv("CC", cases[_i][0], 1);
    build_source("int ok;\n");
    ck_assert_ptr_nonnull(build.fault);
    ck_assert_ptr_nonnull(strstr(build.fault, cases[_i][1]));
    ck_assert_ptr_null(build.reason);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_the_machines_fault)
{
    temporary_write("build", "a file is in its place");
    build_source("int ok;\n");
    ck_assert_ptr_nonnull(build.fault);
    ck_assert_ptr_nonnull(strstr(build.fault, "/build"));
    ck_assert_int_eq(finished, 0);
}
END_TEST

START_TEST(a_supplied_function_that_is_not_there_is_the_machines_fault)
{
    supplied = "average_gradient";
    build_source("int ok;\n");
    ck_assert_ptr_nonnull(build.fault);
    ck_assert_ptr_nonnull(
        strstr(build.fault, "/criteria/supplied/average_gradient.o: No such file"));
    ck_assert_int_eq(finished, 0);
}
END_TEST

/* Compilers that say, as real ones do, that the machine is in their way. */
START_TEST(a_compiler_in_distress_is_the_machines_fault)
{
    static const char *const complaints[] = {
        "gcc: fatal error: cannot execute 'cc1': vfork: Resource temporarily unavailable",
        "cc1: error: cannot write /tmp/ccXYZ.s: No space left on device",
        "/usr/bin/ld: final link failed: No space left on device",
    };
    char script[512];
    snprintf(script, sizeof script, "#!/bin/sh\necho \"%s\" >&2\nexit 1\n", complaints[_i]);
    const char *compiler = temporary_write("compiler", script);
    ck_assert_int_eq(chmod(compiler, 0700), 0);
    setenv("CC", compiler, 1);
    build_source("int ok;\n");
    ck_assert_ptr_null(build.reason);
    ck_assert_ptr_nonnull(build.fault);
    ck_assert_ptr_nonnull(strstr(build.fault, complaints[_i]));
}
END_TEST

/* Compilers that fail whatever the text is. */
START_TEST(a_compiler_that_never_works_is_the_machines_fault)
{
    static const char *const broken[][2] = {
        {"false", "the compiler false cannot work: it does not compile the assignment's header"},
        {"cc -include /no-such-header.h", "the compiler cc cannot work: "},
    };
    setenv("CC", broken[_i][0], 1);
    build_source("int ok;\n");
    ck_assert_ptr_nonnull(build.fault);
    ck_assert_ptr_nonnull(strstr(build.fault, broken[_i][1]));
}
END_TEST

static Suite *build_suite(void)
{
    Suite *suite = suite_create("build");
    TCase *tests = tcase_create("build");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, the_supplied_function_is_called_within_the_file, 0,
                        COMPILERS * OVERRIDDEN);
    tcase_add_loop_test(tests, names_of_others_are_the_students_within_the_file, 0, COMPILERS);
    tcase_add_loop_test(tests, the_file_goes_by_the_name_that_the_student_knows, 0, COMPILERS);
    tcase_add_loop_test(tests, the_first_errors_are_the_reason, 0, COMPILERS);
    tcase_add_test(tests, reasons_have_an_end);
    tcase_add_loop_test(tests, hostile_sources_are_the_students_fault, 0, 9);
    tcase_add_loop_test(tests, files_that_are_only_named_are_not_shown, 0, 3);
    tcase_add_loop_test(tests, places_that_are_nowhere_are_right, 0, COMPILERS);
    tcase_add_loop_test(tests, headers_of_the_system_are_known, 0,
                        sizeof headers / sizeof headers[0]);
    tcase_add_loop_test(tests, a_compiler_that_cannot_run_is_the_machines_fault, 0, 3);
    tcase_add_test(tests, a_folder_that_cannot_be_written_is_the_machines_fault);
    tcase_add_test(tests, a_supplied_function_that_is_not_there_is_the_machines_fault);
    tcase_add_loop_test(tests, a_compiler_in_distress_is_the_machines_fault, 0, 3);
    tcase_add_loop_test(tests, a_compiler_that_never_works_is_the_machines_fault, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return suite_run(build_suite());
}

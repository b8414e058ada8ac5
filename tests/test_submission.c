/* test_submission.c - reading the three files from folders and zip files */
#define _GNU_SOURCE /* memmem */
#include "grading/submission.h"

#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "grading/workspace.h"
#include "tests/suite.h"

#define LITERAL(s) s, sizeof(s) - 1
#define ABC_SHA256                                                                                 \
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2 */

static const char *base; /* holds the folders of all tests */
static char folder[512]; /* a fresh one for each test; paths below are inside it */

static void enter_folder(void)
{
    snprintf(folder, sizeof folder, "%s/XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void write_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

/* The three files in a folder, "int a;\n" each. */
static void write_three(const char *where)
{
    mkdir(where, 0777);
    for (int i = 0; i < SUBMISSION_FILES; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", where, submission_names[i]);
        write_bytes(path, LITERAL("int a;\n"));
    }
}

static struct submission submission;
static char *problem;

static void expect_read(const char *path)
{
    ck_assert_msg(submission_read(path, NULL, &submission, &problem) == 0, "%s", problem);
}

static void expect_refused(const char *path, const char *first, const char *second)
{
    ck_assert_int_eq(submission_read(path, NULL, &submission, &problem), -1);
    ck_assert_msg(strstr(problem, first), "'%s' is not in: %s", first, problem);
    ck_assert_msg(strstr(problem, second), "'%s' is not in: %s", second, problem);
    ck_assert_ptr_null(strchr(problem, '\n'));
    ck_assert_ptr_null(submission.files[0].text);
    free(problem);
}

/* ---- folders ---- */

START_TEST(test_folders)
{
    static const char *const places[] = {"flat", "with spaces", "deep/"};
    write_three("flat");
    write_three("with spaces");
    mkdir("deep", 0777);
    write_three("deep/assignment");
    expect_read(places[_i]);
    for (int i = 0; i < SUBMISSION_FILES; i++)
        ck_assert_str_eq(submission.files[i].text, "int a;\n");
    submission_free(&submission);
}
END_TEST

/* What the second file holds, and what is compiled. */
static const struct {
    const char *bytes;
    size_t n;
    const char *text;
} contents[] = {
    {LITERAL("abc"), "abc"},
    {LITERAL("int a;\r\nint b;\r\n"), "int a;\nint b;\n"},
    {LITERAL("\xEF\xBB\xBFint a;\r\n"), "int a;\n"},
    {LITERAL("a\rb\r"), "a\rb\r"},
    {LITERAL("// caf\xE9\n"), "// caf\xE9\n"},
};

START_TEST(test_contents)
{
    write_three("s");
    write_bytes("s/pipeline.c", contents[_i].bytes, contents[_i].n);
    expect_read("s");
    ck_assert_str_eq(submission.files[1].text, contents[_i].text);
    ck_assert_uint_eq(submission.files[1].size, strlen(contents[_i].text));
    submission_free(&submission);
}
END_TEST

/* The hash is that of the bytes as submitted: sha256sum gives the same. */
START_TEST(test_hash)
{
    write_three("s");
    write_bytes("s/data_parallel.c", LITERAL("abc"));
    write_bytes("s/pipeline.c", LITERAL("\xEF\xBB\xBFint a;\r\n"));
    expect_read("s");
    ck_assert_str_eq(submission.files[0].sha256, ABC_SHA256);
    FILE *pipe = popen("sha256sum s/pipeline.c", "r");
    char line[65] = "";
    ck_assert_ptr_nonnull(fgets(line, sizeof line, pipe));
    pclose(pipe);
    ck_assert_str_eq(submission.files[1].sha256, line);
    submission_free(&submission);
}
END_TEST

static void make_missing(void)
{
    unlink("s/pipeline.c");
}
static void make_two_missing(void)
{
    unlink("s/pipeline.c");
    unlink("s/finetune.c");
}
static void make_empty(void)
{
    write_bytes("s/pipeline.c", "", 0);
}
static void make_blank(void)
{
    write_bytes("s/pipeline.c", LITERAL("\xEF\xBB\xBF \r\n\t\n"));
}
static void make_binary(void)
{
    write_bytes("s/pipeline.c", LITERAL("\x7F"
                                        "ELF\2\1\1\0"));
}
static void make_utf16(void)
{
    write_bytes("s/pipeline.c", LITERAL("\xFF\xFE/\0*\0"));
}
static void make_folder(void)
{
    unlink("s/pipeline.c");
    mkdir("s/pipeline.c", 0777);
}
static void make_fifo(void)
{
    unlink("s/pipeline.c");
    mkfifo("s/pipeline.c", 0666);
}
static void make_link(void)
{
    rename("s/pipeline.c", "elsewhere.c");
    ck_assert_int_eq(symlink("../elsewhere.c", "s/pipeline.c"), 0);
}
static void make_linked_folder(void)
{
    write_three("elsewhere");
    ck_assert_int_eq(symlink("../elsewhere", "s/assignment"), 0);
}
static void make_large(void)
{
    ck_assert_int_eq(truncate("s/pipeline.c", (off_t)2 << 30), 0);
}
static void make_slightly_large(void)
{
    char *bytes = malloc(SUBMISSION_FILE_MAX + 1);
    memset(bytes, 'a', SUBMISSION_FILE_MAX + 1);
    write_bytes("s/pipeline.c", bytes, SUBMISSION_FILE_MAX + 1);
    free(bytes);
}

static const struct {
    void (*make)(void);
    const char *named, *said;
} bad_folders[] = {
    {make_missing, "s: missing: pipeline.c", "pipeline.c"},
    {make_two_missing, "s: missing: pipeline.c, finetune.c", "finetune.c"},
    {make_empty, "s/pipeline.c", "is empty"},
    {make_blank, "s/pipeline.c", "is empty"},
    {make_binary, "s/pipeline.c", "byte 7 is NUL"},
    {make_utf16, "byte 3 is NUL", "save it as UTF-8, not UTF-16"},
    {make_folder, "s/pipeline.c", "is a folder, not a file"},
    {make_fifo, "s/pipeline.c", "is a named pipe, not a file"},
    {make_link, "s/pipeline.c", "is a symbolic link"},
    {make_linked_folder, "s/assignment", "is not a folder"},
    {make_large, "s/pipeline.c", "is larger than 1 MiB"},
    {make_slightly_large, "s/pipeline.c", "is larger than 1 MiB"},
};

START_TEST(test_bad_folder)
{
    write_three("s");
    bad_folders[_i].make();
    expect_refused("s", bad_folders[_i].named, bad_folders[_i].said);
}
END_TEST

static const struct {
    const char *path, *said;
} bad_paths[] = {
    {"nowhere", "no such folder or zip file"},
    {"s/pipeline.c", "neither a folder nor a zip file"},
    {"s/pipeline.c/x", "Not a directory"},
    {"/dev/null", "is a device"},
    {"fifo", "is a named pipe"},
    {"empty", "missing: data_parallel.c, pipeline.c, finetune.c"},
    {"empty.zip", "neither a folder nor a zip file"},
    {"\x1B[31mred", "red: no such folder"},
};

START_TEST(test_bad_path)
{
    write_three("s");
    mkdir("empty", 0777);
    mkfifo("fifo", 0666);
    write_bytes("empty.zip", "", 0);
    expect_refused(bad_paths[_i].path, bad_paths[_i].said, "");
}
END_TEST

START_TEST(test_largest)
{
    write_three("s");
    make_slightly_large();
    ck_assert_int_eq(truncate("s/pipeline.c", SUBMISSION_FILE_MAX), 0);
    expect_read("s");
    ck_assert_uint_eq(submission.files[1].size, SUBMISSION_FILE_MAX);
    submission_free(&submission);
}
END_TEST

/* One's own checkout may keep its files elsewhere. */
START_TEST(test_checkout_may_link)
{
    mkdir("home", 0777);
    write_three("home/assignment");
    ck_assert_int_eq(rename("home/assignment/pipeline.c", "mine.c"), 0);
    ck_assert_int_eq(symlink("../../mine.c", "home/assignment/pipeline.c"), 0);
    ck_assert_int_eq(submission_read(NULL, "home", &submission, &problem), 0);
    submission_free(&submission);
}
END_TEST

START_TEST(test_write)
{
    char *paths[SUBMISSION_FILES], bytes[32] = "";
    write_three("s");
    write_bytes("s/finetune.c", LITERAL("one\r\ntwo\r\n"));
    expect_read("s");
    mkdir("private", 0700);
    submission_write(&submission, "private", paths);
    ck_assert_str_eq(paths[2], "private/assignment/finetune.c");
    FILE *file = fopen(paths[2], "r");
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes - 1, file), 8);
    ck_assert_str_eq(bytes, "one\ntwo\n");
    fclose(file);
    for (int i = 0; i < SUBMISSION_FILES; i++)
        free(paths[i]);
    submission_free(&submission);
}
END_TEST

/* ---- zip files ---- */

/* What can be special about the second entry of an archive. */
enum special { ORDINARY, ENCRYPTED, LINKED, EMPTY, LARGE };

static void add_entry(zip_t *archive, const char *name, enum special special)
{
    static char large[SUBMISSION_FILE_MAX + 1];
    memset(large, 'a', sizeof large);
    const char *text = special == LARGE ? large : "int a;\r\n";
    size_t n = special == EMPTY ? 0 : special == LARGE ? sizeof large : strlen(text);
    zip_source_t *source = zip_source_buffer(archive, text, n, 0);
    zip_int64_t index = zip_file_add(archive, name, source, 0);
    ck_assert_int_ge(index, 0);
    if (special == ENCRYPTED)
        ck_assert_int_eq(zip_file_set_encryption(archive, (zip_uint64_t)index, ZIP_EM_AES_256, "x"),
                         0);
    if (special == LINKED)
        zip_file_set_external_attributes(archive, (zip_uint64_t)index, 0, ZIP_OPSYS_UNIX,
                                         (zip_uint32_t)(S_IFLNK | 0777) << 16);
}

static void write_zip(const char *path, const char *const *names, enum special special)
{
    zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    ck_assert_ptr_nonnull(archive);
    for (int i = 0; names[i]; i++)
        add_entry(archive, names[i], i == 1 ? special : ORDINARY);
    ck_assert_int_eq(zip_close(archive), 0);
}

enum { ENTRIES = 12 };
#define THREE(prefix) prefix "data_parallel.c", prefix "pipeline.c", prefix "finetune.c"
#define NONE_FOUND                                                                                 \
    {                                                                                              \
        "missing: data_parallel.c, pipeline.c, finetune.c", "z.zip"                                \
    }

static const struct {
    const char *names[ENTRIES];
    enum special special;
    const char *refusal[2]; /* NULL: it is read */
} zips[] = {
    {{THREE("")}, 0, {NULL}},
    {{THREE("assignment/")}, 0, {NULL}},
    {{THREE("./assignment/")}, 0, {NULL}},
    {{THREE("hw5/")}, 0, {NULL}},
    {{THREE("hw5/assignment/")}, 0, {NULL}},
    {{THREE("my folder/assignment/")}, 0, {NULL}},
    {{THREE("hw5\\assignment\\")}, 0, {NULL}},
    {{THREE("assignment/"), THREE("__MACOSX/assignment/._"), "__MACOSX/._assignment"}, 0, {NULL}},
    {{THREE("__MACOSX/"), THREE("hw5/assignment/"), "hw5/assignment/._pipeline.c"}, 0, {NULL}},
    {{THREE("hw5/assignment/"), THREE("hw5/tests/reference/assignment/")}, 0, {NULL}},
    {{THREE("assignment/"), "../evil", "/etc/evil", "runtime/tensor.c"}, 0, {NULL}},
    {{"assignment/data_parallel.c", "assignment/pipeline.c", "assignment/finetune.c.txt"},
     0,
     {"missing: finetune.c (it holds assignment/finetune.c.txt, whose name", "z.zip"}},
    {{"readme.txt"}, 0, NONE_FOUND},
    {{THREE("a/b/assignment/")},
     0,
     {"finetune.c (it holds a/b/assignment/data_parallel.c: only one folder may be around",
      "z.zip"}},
    {{"Data_Parallel.c", "pipeline.c", "finetune.c"},
     0,
     {"missing: data_parallel.c (it holds Data_Parallel.c, whose name must be data_parallel.c)",
      "z.zip"}},
    {{"hw5/data_parallel.c", "__MACOSX/hw5/._pipeline.c", "hw5/pipeline (1).c", "hw5/finetune.c"},
     0,
     {"missing: pipeline.c (it holds hw5/pipeline (1).c, whose name must be pipeline.c)", "z.zip"}},
    {{THREE("../")}, 0, NONE_FOUND},
    {{THREE("../assignment/")}, 0, NONE_FOUND},
    {{THREE("/")}, 0, NONE_FOUND},
    {{THREE("/assignment/")}, 0, NONE_FOUND},
    {{THREE(""), THREE("assignment/")}, 0, {"twice", "assignment/data_parallel.c"}},
    {{THREE("a/"), "b/pipeline.c"}, 0, {"twice", "b/pipeline.c"}},
    {{"a/data_parallel.c", "b/pipeline.c", "b/finetune.c"}, 0, {"different folders", "a/data"}},
    {{"a/data_parallel.c", "pipeline.c", "finetune.c"}, 0, {"different folders", "a/data"}},
    {{THREE("")}, ENCRYPTED, {"z.zip: pipeline.c", "is encrypted"}},
    {{THREE("")}, LINKED, {"z.zip: pipeline.c", "is a symbolic link"}},
    {{THREE("")}, EMPTY, {"z.zip: pipeline.c", "is empty"}},
    {{THREE("")}, LARGE, {"z.zip: pipeline.c", "is larger than 1 MiB"}},
};

START_TEST(test_zip)
{
    write_zip("z.zip", zips[_i].names, zips[_i].special);
    if (zips[_i].refusal[0]) {
        expect_refused("z.zip", zips[_i].refusal[0], zips[_i].refusal[1]);
        return;
    }
    expect_read("z.zip");
    for (int i = 0; i < SUBMISSION_FILES; i++)
        ck_assert_str_eq(submission.files[i].text, "int a;\n");
    submission_free(&submission);
}
END_TEST

/* An archive that names an entry twice, which libzip does not write: one name is patched. */
START_TEST(test_zip_same_name_twice)
{
    static const char *const names[] = {THREE(""), "pipelinf.c", NULL};
    write_zip("z.zip", names, ORDINARY);
    char bytes[4096];
    FILE *file = fopen("z.zip", "r+");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    for (size_t i = 0; i + 10 <= n; i++) {
        if (memcmp(bytes + i, "pipelinf.c", 10) == 0)
            bytes[i + 7] = 'e';
    }
    rewind(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
    expect_refused("z.zip", "holds pipeline.c twice", "");
}
END_TEST

/* Cut anywhere, or with any byte changed, an archive is read or refused, and nothing worse. */
START_TEST(test_zip_damaged)
{
    static const char *const names[] = {THREE("assignment/"), NULL};
    char bytes[4096], changed[4096];
    write_zip("z.zip", names, ORDINARY);
    FILE *file = fopen("z.zip", "r");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t i = 0; i < 2 * n; i++) {
        memcpy(changed, bytes, n);
        if (i >= n)
            changed[i - n] = (char)(changed[i - n] ^ 0x41);
        write_bytes("damaged.zip", changed, i < n ? i : n);
        if (submission_read("damaged.zip", NULL, &submission, &problem) == 0)
            submission_free(&submission);
        else
            free(problem);
    }
}
END_TEST

static void change_text(char *bytes, size_t n)
{
    char *text = memmem(bytes, n, "int a;", 6);
    ck_assert_ptr_nonnull(text);
    text[4] = 'b';
}

/* In every header of a member, and of the directory, a method that nobody has. */
static void change_method(char *bytes, size_t n)
{
    for (size_t i = 0; i + 12 < n; i++)
        if (memcmp(bytes + i, "PK\3\4", 4) == 0)
            bytes[i + 8] = 77;
        else if (memcmp(bytes + i, "PK\1\2", 4) == 0)
            bytes[i + 10] = 77;
}

static const struct {
    void (*change)(char *bytes, size_t n);
    const char *said;
} changes[] = {{change_text, "is damaged"}, /* the checksum tells */
               {change_method, "is compressed by a method that cannot be read here"}};

START_TEST(test_zip_changed)
{
    static const char *const names[] = {THREE(""), NULL};
    char bytes[4096];
    write_zip("z.zip", names, ORDINARY);
    FILE *file = fopen("z.zip", "r+");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    changes[_i].change(bytes, n);
    rewind(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
    expect_refused("z.zip", "data_parallel.c", changes[_i].said);
}
END_TEST

/* ---- the private folder ---- */

START_TEST(test_workspace_removes_anything)
{
    char *path = strdup(workspace_create());
    ck_assert_int_eq(chdir(path), 0);
    mkdir("locked", 0777);
    write_bytes("locked/file", LITERAL("x"));
    chmod("locked", 0000);
    ck_assert_int_eq(symlink("/etc/passwd", "link"), 0);
    ck_assert_int_eq(symlink("..", "loop"), 0);
    mkfifo("fifo", 0000);
    for (int depth = 0; depth < 3000; depth++) {
        ck_assert_int_eq(mkdir("a folder with a rather long name", 0777), 0);
        ck_assert_int_eq(chdir("a folder with a rather long name"), 0);
    }
    ck_assert_int_eq(chdir("/"), 0);
    workspace_remove();
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(access(folder, F_OK), 0); /* where "loop" led */
    ck_assert_int_eq(access("/etc/passwd", F_OK), 0);
    free(path);
}
END_TEST

START_TEST(test_workspace_is_private)
{
    struct stat info;
    ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
    const char *path = workspace_create();
    ck_assert_int_eq(strncmp(path, folder, strlen(folder)), 0);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
    workspace_remove();
}
END_TEST

int main(void)
{
    base = workspace_create();
    Suite *suite = suite_create("submission");
    TCase *test = tcase_create("submission");
    tcase_set_timeout(test, 60);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_loop_test(test, test_folders, 0, 3);
    tcase_add_loop_test(test, test_contents, 0, sizeof contents / sizeof *contents);
    tcase_add_test(test, test_hash);
    tcase_add_loop_test(test, test_bad_folder, 0, sizeof bad_folders / sizeof *bad_folders);
    tcase_add_loop_test(test, test_bad_path, 0, sizeof bad_paths / sizeof *bad_paths);
    tcase_add_test(test, test_largest);
    tcase_add_test(test, test_checkout_may_link);
    tcase_add_test(test, test_write);
    tcase_add_loop_test(test, test_zip, 0, sizeof zips / sizeof *zips);
    tcase_add_test(test, test_zip_same_name_twice);
    tcase_add_test(test, test_zip_damaged);
    tcase_add_loop_test(test, test_zip_changed, 0, sizeof changes / sizeof *changes);
    tcase_add_test(test, test_workspace_removes_anything);
    tcase_add_test(test, test_workspace_is_private);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

/* test_submission.c - reading the three files from folders */
#include "grading/submission.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/submission.h"
#include "tests/suite.h"

#define ABC_SHA256                                                                                 \
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2 */

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
    {"empty.zip", "empty.zip: is empty"},
    {"cut.zip", "cut.zip: is damaged: a zip file that ends too early"},
    {"\x1B[31mred", "red: no such folder"},
};

START_TEST(test_bad_path)
{
    write_three("s");
    mkdir("empty", 0777);
    mkfifo("fifo", 0666);
    write_bytes("empty.zip", "", 0);
    write_bytes("cut.zip", "PK\3\4\24\0", 6);
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
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

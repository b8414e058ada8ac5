/* test_submission_zip.c - reading the three files from zip files */
#define _GNU_SOURCE /* memmem */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

#include "tests/submission.h"
#include "tests/suite.h"

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

int main(void)
{
    base = workspace_create();
    Suite *suite = suite_create("submission_zip");
    TCase *test = tcase_create("submission_zip");
    tcase_set_timeout(test, 60);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_loop_test(test, test_zip, 0, sizeof zips / sizeof *zips);
    tcase_add_test(test, test_zip_same_name_twice);
    tcase_add_test(test, test_zip_damaged);
    tcase_add_loop_test(test, test_zip_changed, 0, sizeof changes / sizeof *changes);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

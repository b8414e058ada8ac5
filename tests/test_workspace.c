/* test_workspace.c - the private folder of a run */
#include "grading/workspace.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/suite.h"

START_TEST(test_workspace_removes_anything)
{
    char *path = strdup(workspace_create());
    ck_assert_int_eq(chdir(path), 0);
    mkdir("locked", 0777);
    write_text("locked/file", "x");
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
    Suite *suite = suite_create("workspace");
    TCase *test = tcase_create("workspace");
    tcase_set_timeout(test, 60);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_test(test, test_workspace_removes_anything);
    tcase_add_test(test, test_workspace_is_private);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

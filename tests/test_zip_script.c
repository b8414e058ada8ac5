/* test_zip_script.c - scripts/create_submission_zip.sh, and what grade makes of its zip */
#include "tests/cli.h"
#include "tests/suite.h"

/* A checkout with the script, the reference solution and the given student files. */
static void write_checkout(void)
{
    static const char *const copies[][3] = {
        {"cp", "scripts/create_submission_zip.sh", "checkout/scripts"},
        {"cp", "tests/submissions/reference", "checkout/tests/submissions"},
    };
    ck_assert_int_eq(run((const char *[]){"mkdir", "-p", "checkout/scripts",
                                          "checkout/tests/submissions", NULL}),
                     0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            run((const char *[]){"cp", "-r", in_root(copies[i][1]), copies[i][2], NULL}), 0);
    ck_assert_int_eq(run((const char *[]){"cp", "-r", "sub/assignment", "checkout", NULL}), 0);
}

static int create_zip(void)
{
    return run((const char *[]){"bash", "checkout/scripts/create_submission_zip.sh", NULL});
}

START_TEST(test_zip_of_a_submission)
{
    write_submission(NULL, "", ";");
    write_checkout();
    ck_assert_msg(create_zip() == 0, "%s", outcome.err);
    char *path = strndup(outcome.out, strcspn(outcome.out, "\n"));
    ck_assert_msg(strstr(path, "checkout/dist/hw56_submission_") != NULL, "%s", path);
    ck_assert_int_eq(run((const char *[]){"unzip", "-Z1", path, NULL}), 0);
    ck_assert_str_eq(outcome.out,
                     "assignment/data_parallel.c\nassignment/pipeline.c\nassignment/finetune.c\n");
    ck_assert_int_eq(grade("--submission", path, "--device", "cpu", "--quiet", NULL), 2);
    ck_assert_str_eq(outcome.out, "58/100  (42 blocked)\n");
    free(path);
}
END_TEST

START_TEST(test_zip_of_a_starter)
{
    ck_assert_int_eq(run((const char *[]){"mkdir", "sub", NULL}), 0);
    ck_assert_int_eq(run((const char *[]){"cp", "-r", in_root("assignment"), "sub", NULL}), 0);
    write_checkout();
    ck_assert_int_eq(create_zip(), 0);
    ck_assert_ptr_nonnull(strstr(outcome.err, "pipe_forward is not implemented yet"));
}
END_TEST

START_TEST(test_zip_refuses_the_solution)
{
    write_submission("finetune.c", "", "int mine = 1; (void)mine;");
    write_checkout();
    ck_assert_int_eq(create_zip(), 1);
    ck_assert_ptr_nonnull(strstr(outcome.err, "data_parallel.c holds the reference solution"));
    ck_assert_int_eq(access("checkout/dist", F_OK), -1);
}
END_TEST

START_TEST(test_zip_names_a_missing_file)
{
    write_submission(NULL, "", ";");
    write_checkout();
    unlink("checkout/assignment/pipeline.c");
    ck_assert_int_eq(create_zip(), 1);
    ck_assert_ptr_nonnull(strstr(outcome.err, "assignment/pipeline.c is missing"));
}
END_TEST

int main(void)
{
    find_grade();
    Suite *suite = suite_create("zip_script");
    TCase *test = tcase_create("zip_script");
    tcase_set_timeout(test, 300);
    tcase_add_checked_fixture(test, enter_folder, NULL);
    tcase_add_test(test, test_zip_of_a_submission);
    tcase_add_test(test, test_zip_of_a_starter);
    tcase_add_test(test, test_zip_refuses_the_solution);
    tcase_add_test(test, test_zip_names_a_missing_file);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}

/* Every criterion passes the reference and other right solutions, and fails the defects that it is
 * there to catch, and only those. All run as grade runs them, the ones that need GPUs on the CPU.
 */
#define _GNU_SOURCE
#include <check.h>

#include "grading/home.h"
#include "grading/rubric.h"
#include "grading/run.h"
#include "runtime/scope.h"
#include "tests/defects.h"
#include "tests/defects_data_parallel.h"
#include "tests/defects_finetune.h"
#include "tests/defects_pipeline.h"
#include "tests/temporary.h"

enum { FILES = 3 };
static const char *const file_names[FILES] = {"data_parallel.c", "pipeline.c", "finetune.c"};
#define REFERENCE "tests/submissions/reference/assignment/%s"

/* ---- a run over one submission ---- */

static const char *apply_edit(const char *source, const struct edit *edit, const char *name)
{
    const char *at = strstr(source, edit->from);
    ck_assert_msg(at != NULL, "%s: not in the reference:\n%s", name, edit->from);
    return scope_printf("%.*s%s%s", (int)(at - source), source, edit->to, at + strlen(edit->from));
}

/* The three files in the temporary folder; `file` as the variant has it. */
static void write_submission(const char *file, const struct variant *variant)
{
    for (int i = 0; i < FILES; i++) {
        char *reference = temporary_read(scope_printf(REFERENCE, file_names[i]));
        const char *source = reference;
        for (const struct edit *edit = variant->edits;
             strcmp(file, file_names[i]) == 0 && edit < variant->edits + 3 && edit->from; edit++)
            source = apply_edit(source, edit, variant->name);
        temporary_write(file_names[i], source);
        free(reference);
    }
}

static char *in_folder(const char *name)
{
    return scope_printf("%s/%s", temporary, name);
}

static void note_finished(void *context, struct result *result)
{
    (void)context;
    (void)result;
}

/* Run the criteria of one file that are (or are not) speedups. */
static struct run run_file(const char *file, bool speedups, struct result *results)
{
    const struct criterion *const *all;
    int total = rubric_all(&all);
    struct run run = {.home = home_find(),
                      .folder = temporary,
                      .device = "cpu",
                      .seed = 20240229,
                      .timeout_s = 60,
                      .results = results};
    for (int i = 0; i < FILES; i++)
        run.sources[i] = in_folder(file_names[i]);
    for (int i = 0; i < total; i++)
        if (strcmp(all[i]->file, file) == 0 && all[i]->speedup == speedups)
            results[run.count++] = (struct result){
                .criterion = all[i], .log = in_folder(scope_printf("%s.log", all[i]->id))};
    volatile bool interrupted = false;
    char *fault = NULL;
    int status = run_criteria(&run, note_finished, NULL, &interrupted, &fault);
    ck_assert_msg(status == 0, "%s", fault ? fault : "no reason");
    return run;
}

static void release(struct run *run)
{
    for (int i = 0; i < run->count; i++) {
        free(run->results[i].reason);
        free(run->results[i].cause);
        json_decref(run->results[i].measurements);
    }
    free((char *)run->home);
    temporary_remove();
}

static bool is_named(const char *ids, const char *id)
{
    const char *at = strstr(ids, id);
    size_t n = strlen(id);
    for (; at; at = strstr(at + 1, id))
        if ((at == ids || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' '))
            return true;
    return false;
}

static void check_variant(const char *file, const struct variant *variant)
{
    SCOPE;
    struct result results[RUBRIC_MAX];
    temporary_create();
    write_submission(file, variant);
    struct run run = run_file(file, false, results);
    const char *wrong = "";
    for (int i = 0; i < run.count; i++) {
        const char *id = results[i].criterion->id;
        enum status expected = is_named(variant->fails, id) ? STATUS_FAILED : STATUS_PASSED;
        if (results[i].status != expected)
            wrong = scope_printf("%s\n  %s %s: %s", wrong, id, status_name(results[i].status),
                                 results[i].reason ? results[i].reason : "no reason");
        if (getenv("SHOW_REASONS") && results[i].reason)
            printf("%s | %s | %s\n", variant->name, id, results[i].reason);
    }
    release(&run);
    ck_assert_msg(!*wrong, "%s:%s", variant->name, wrong);
}

/* ---- tests ---- */

START_TEST(test_data_parallel)
{
    check_variant(file_names[0], &data_parallel_variants[_i]);
}
END_TEST

START_TEST(test_pipeline)
{
    check_variant(file_names[1], &pipeline_variants[_i]);
}
END_TEST

START_TEST(test_finetune)
{
    check_variant(file_names[2], &finetune_variants[_i]);
}
END_TEST

START_TEST(test_reference)
{
    check_variant(file_names[_i], &(struct variant){"the reference", "", {{NULL, NULL}}});
}
END_TEST

/* On the CPU the speedup itself says nothing; that it was measured, and what was computed, does. */
START_TEST(test_speedups)
{
    SCOPE;
    struct result results[RUBRIC_MAX];
    temporary_create();
    write_submission("", &(struct variant){"the reference", "", {{NULL, NULL}}});
    struct run run = run_file(file_names[_i], true, results);
    ck_assert_int_eq(run.count, 1);
    if (results[0].status != STATUS_PASSED)
        ck_assert_msg(strncmp(results[0].reason, "the speedup is", 14) == 0, "%s",
                      results[0].reason);
    const json_t *ratios = json_object_get(results[0].measurements, "ratios");
    ck_assert_uint_eq(json_array_size(ratios), 5);
    ck_assert(json_number_value(json_object_get(results[0].measurements, "median")) > 0);
    release(&run);
}
END_TEST

/* A train_step that skips its update is fast, and earns nothing. */
START_TEST(test_speedup_of_skipped_work)
{
    SCOPE;
    struct result results[RUBRIC_MAX];
    temporary_create();
    write_submission(file_names[0],
                     &(struct variant){"skips the update",
                                       "dp_performance",
                                       {{" || optimizer_step(optimizer) < 0)", ")"}}});
    struct run run = run_file(file_names[0], true, results);
    ck_assert_int_eq(run.count, 1);
    ck_assert_int_eq(results[0].status, STATUS_FAILED);
    ck_assert_msg(strstr(results[0].reason, "after the timed updates") != NULL, "%s",
                  results[0].reason);
    release(&run);
}
END_TEST

static Suite *criteria_suite(void)
{
    Suite *suite = suite_create("criteria");
    TCase *tests = tcase_create("submissions");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, test_reference, 0, FILES);
    tcase_add_loop_test(tests, test_speedups, 0, 2);
    tcase_add_test(tests, test_speedup_of_skipped_work);
    tcase_add_loop_test(tests, test_data_parallel, 0,
                        sizeof data_parallel_variants / sizeof *data_parallel_variants);
    tcase_add_loop_test(tests, test_pipeline, 0,
                        sizeof pipeline_variants / sizeof *pipeline_variants);
    tcase_add_loop_test(tests, test_finetune, 0,
                        sizeof finetune_variants / sizeof *finetune_variants);
    suite_add_tcase(suite, tests);
    return suite;
}

/* The processes of a run are this program again, as they are grade elsewhere. */
int main(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "grade-criterion") == 0)
        return criterion_main(argc, argv);
    if (argc > 0 && strcmp(argv[0], "grade-subject") == 0)
        return subject_main(argc, argv);
    SRunner *runner = srunner_create(criteria_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

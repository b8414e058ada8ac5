/* .pt files: round trips, what torch.save wrote, refusals, the file system. Hostile bytes are in
 * test_pickle.c. With arguments it is a tool for torch_adapter.py: `test_serialize copy FROM TO`
 * loads a file and saves what it held. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/stat.h>

#include "runtime/ops.h"
#include "runtime/serialize.h"
#include "tests/bytes.h"
#include "tests/golden.h"
#include "tests/suite.h"

/* ---- round trips ---- */

static struct tensor *counting(int ndim, const int64_t *shape, enum dtype dtype)
{
    struct tensor *x = tensor_empty(ndim, shape, FLOAT64, CPU);
    double *at = tensor_data(x);
    for (int64_t i = 0; i < tensor_numel(x); i++)
        at[i] = (double)i / 8 - 1;
    return tensor_cast(x, dtype);
}

static struct named_tensors *various(void)
{
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "z.last", counting(SHAPE(3, 4), FLOAT32));
    named_tensors_add(list, "double", counting(SHAPE(2, 3, 4), FLOAT64));
    named_tensors_add(list, "half", counting(SHAPE(5), FLOAT16));
    named_tensors_add(list, "scalar", counting(0, NULL, FLOAT32));
    named_tensors_add(list, "empty", counting(SHAPE(0, 3), FLOAT32));
    named_tensors_add(list, "transposed", tensor_transpose(counting(SHAPE(3, 4), FLOAT64), 0, 1));
    named_tensors_add(list, "part", tensor_slice(counting(SHAPE(6, 2), FLOAT32), 0, 2, 3));
    named_tensors_add(list, "eight", counting(SHAPE(1, 2, 1, 2, 1, 2, 1, 2), FLOAT32));
    named_tensors_add(list, "wide", counting(SHAPE(300, 300), FLOAT32));
    named_tensors_add(list, "größe \"quoted\"\n", counting(SHAPE(1), FLOAT32));
    named_tensors_add(list, "", counting(SHAPE(2), FLOAT32));
    return list;
}

static void check_same(const struct named_tensors *got, const struct named_tensors *expected)
{
    check_no_error();
    ck_assert_int_eq(got->n, expected->n);
    for (int i = 0; i < got->n; i++) {
        ck_assert_str_eq(got->at[i].name, expected->at[i].name);
        ck_assert_int_eq(tensor_dtype(got->at[i].tensor), tensor_dtype(expected->at[i].tensor));
        check_close(got->at[i].tensor, expected->at[i].tensor, 0, 0, got->at[i].name);
    }
}

START_TEST(round_trip)
{
    SCOPE;
    const char *path = temporary_path("various.pt");
    ck_assert_int_eq(tensors_save(various(), path), 0);
    check_same(tensors_load(path), various());
    ck_assert_int_eq(temporary_count(), 1);
}
END_TEST

START_TEST(no_tensors_at_all)
{
    SCOPE;
    ck_assert_int_eq(tensors_save(named_tensors_new(), temporary_path("none.pt")), 0);
    check_same(tensors_load(temporary_path("none.pt")), named_tensors_new());
}
END_TEST

START_TEST(many_tensors)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    for (int i = 0; i < 700; i++)
        named_tensors_add(list, scope_printf("layer%d", i), counting(SHAPE(i % 7 + 1), FLOAT32));
    ck_assert_int_eq(tensors_save(list, temporary_path("many.pt")), 0);
    check_same(tensors_load(temporary_path("many.pt")), list);
}
END_TEST

START_TEST(same_tensors_same_file)
{
    SCOPE;
    ck_assert_int_eq(tensors_save(various(), temporary_path("one.pt")), 0);
    ck_assert_int_eq(tensors_save(various(), temporary_path("two.pt")), 0);
    struct bytes one = bytes_of_file(temporary_path("one.pt")),
                 two = bytes_of_file(temporary_path("two.pt"));
    ck_assert_uint_eq(one.n, two.n);
    ck_assert_mem_eq(one.at, two.at, one.n);
}
END_TEST

START_TEST(loaded_tensors_are_plain)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "x", tensor_set_requires_grad(counting(SHAPE(2), FLOAT32), true));
    ck_assert_int_eq(tensors_save(list, temporary_path("x.pt")), 0);
    ck_assert(!tensor_requires_grad(tensors_load(temporary_path("x.pt"))->at[0].tensor));
    ck_assert(tensor_requires_grad(list->at[0].tensor));
}
END_TEST

START_TEST(null_passes_through)
{
    SCOPE;
    ck_assert_int_eq(tensors_save(NULL, "x"), -1);
    ck_assert_int_eq(tensors_save(named_tensors_new(), NULL), -1);
    ck_assert_ptr_null(tensors_load(NULL));
    ck_assert(!error_occurred());
}
END_TEST

/* ---- files that torch.save wrote (tests/golden/make_pt.py) ---- */

struct saved {
    const char *file;
    int n;
};
static const struct saved saved[] = {
    {"dict.pt", 4},        {"ordered.pt", 6}, {"state_dict.pt", 4},
    {"newer_torch.pt", 2}, {"long.pt", 300},
};

START_TEST(what_torch_saved)
{
    SCOPE;
    json_t *golden = golden_load("pt.json"), *expected = json_object_get(golden, saved[_i].file);
    struct named_tensors *list = tensors_load(scope_printf("tests/golden/%s", saved[_i].file));
    check_no_error();
    ck_assert_int_eq(list->n, saved[_i].n);
    ck_assert_int_eq(list->n, (int)json_array_size(expected));
    for (int i = 0; i < list->n; i++) {
        json_t *item = json_array_get(expected, (size_t)i);
        struct tensor *tensor = list->at[i].tensor;
        const char *dtype = json_string_value(json_object_get(item, "dtype"));
        ck_assert_str_eq(list->at[i].name, json_string_value(json_object_get(item, "name")));
        ck_assert_str_eq(dtype_name(tensor_dtype(tensor)), dtype);
        check_golden(tensor, json_object_get(item, "values"), 0, 0, list->at[i].name);
    }
    json_decref(golden);
}
END_TEST

/* Refused, with a message that names what is wrong. */
struct refused {
    const char *file, *says;
};
static const struct refused refused[] = {
    {"bad_nested.pt", "\"inner\" is a dict"},
    {"bad_number.pt", "\"epoch\" is an int"},
    {"bad_list.pt", "opcode 0x5d"},
    {"bad_float.pt", "opcode 0x47"},
    {"bad_tensor.pt", "a tensor, not a dictionary"},
    {"bad_long_tensor.pt", "torch.LongStorage"},
    {"bad_bfloat16.pt", "torch.BFloat16Storage"},
    {"bad_sparse.pt", "torch._utils._rebuild_sparse_tensor"},
    {"bad_module.pt", "torch.nn.modules.linear.Linear"},
    {"bad_system.pt", "posix.system"},
    {"bad_protocol.pt", "protocol 4"},
    {"bad_compressed.pt", "compressed"},
    {"bad_big_endian.pt", "byte order"},
    {"bad_expanded.pt", "far larger than the file"},
    {"bad_not_zip.pt", "not a .pt file: Not a zip archive"},
    {"bad_int_key.pt", "key is an int"},
};

START_TEST(what_is_refused)
{
    SCOPE;
    const struct refused *file = &refused[_i];
    const char *path = scope_printf("tests/golden/%s", file->file);
    ck_assert_ptr_null(tensors_load(path));
    const char *message = error_message(error_pending());
    ck_assert_msg(strstr(message, file->says) != NULL, "%s", message);
    ck_assert_msg(strstr(message, path) != NULL, "%s", message);
    check_raised(&ValueError, file->file);
}
END_TEST

/* ---- the file system ---- */

START_TEST(unreadable)
{
    SCOPE;
    const char *paths[] = {temporary_path("missing.pt"), temporary, temporary_path("fifo"),
                           "/dev/null", temporary_path("no/such/folder.pt")};
    ck_assert_int_eq(mkfifo(temporary_path("fifo"), 0600), 0);
    ck_assert_ptr_null(tensors_load(paths[_i]));
    ck_assert_ptr_nonnull(strstr(error_message(error_pending()), paths[_i]));
    check_raised(&OSError, paths[_i]);
}
END_TEST

START_TEST(empty_file)
{
    SCOPE;
    temporary_write("x.pt", "");
    ck_assert_ptr_null(tensors_load(temporary_path("x.pt")));
    check_raised(&ValueError, "an empty file");
}
END_TEST

START_TEST(unwritable)
{
    SCOPE;
    const char *paths[] = {temporary_path("no/such/folder.pt"), temporary, "/dev/full"};
    const int before = temporary_count();
    ck_assert_int_eq(tensors_save(various(), paths[_i]), -1);
    ck_assert_ptr_nonnull(strstr(error_message(error_pending()), paths[_i]));
    check_raised(&OSError, paths[_i]);
    ck_assert_int_eq(temporary_count(), before);
}
END_TEST

START_TEST(overwrites_whole)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "x", counting(SHAPE(2), FLOAT32));
    temporary_write("x.pt", "something else");
    ck_assert_int_eq(tensors_save(various(), temporary_path("x.pt")), 0);
    ck_assert_int_eq(tensors_save(list, temporary_path("x.pt")), 0);
    check_same(tensors_load(temporary_path("x.pt")), list);
    ck_assert_int_eq(temporary_count(), 1);
}
END_TEST

/* What was there stays when the new file cannot be written to its end. */
START_TEST(a_failed_save_leaves_the_old_file)
{
    SCOPE;
    temporary_write("x.pt", "the old file");
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "not \xff text", counting(SHAPE(2), FLOAT32));
    ck_assert_int_eq(tensors_save(list, temporary_path("x.pt")), -1);
    check_raised(&ValueError, "a name that is not UTF-8");
    struct bytes left = bytes_of_file(temporary_path("x.pt"));
    ck_assert_uint_eq(left.n, 12);
    ck_assert_mem_eq(left.at, "the old file", 12);
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, round_trip);
    tcase_add_test(tests, no_tensors_at_all);
    tcase_add_test(tests, many_tensors);
    tcase_add_test(tests, same_tensors_same_file);
    tcase_add_test(tests, loaded_tensors_are_plain);
    tcase_add_test(tests, null_passes_through);
    tcase_add_loop_test(tests, what_torch_saved, 0, COUNT(saved));
    tcase_add_loop_test(tests, what_is_refused, 0, COUNT(refused));
    tcase_add_loop_test(tests, unreadable, 0, 5);
    tcase_add_test(tests, empty_file);
    tcase_add_loop_test(tests, unwritable, 0, 3);
    tcase_add_test(tests, overwrites_whole);
    tcase_add_test(tests, a_failed_save_leaves_the_old_file);
}

static int copy(const char *from, const char *to)
{
    SCOPE;
    if (tensors_save(tensors_load(from), to) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "%s\n", error_message(error_pending()));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "copy") == 0)
        return copy(argv[2], argv[3]);
    Suite *suite = suite_create("serialize");
    TCase *tests = tcase_create("serialize");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, temporary_create, temporary_remove);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* Hostile .pt files: pickles written by hand, files truncated and changed everywhere. */
#define _GNU_SOURCE
#include <string.h>

#include "runtime/ops.h"
#include "runtime/pt_internal.h"
#include "runtime/serialize.h"
#include "tests/bytes.h"
#include "tests/golden.h"
#include "tests/suite.h"

/* ---- pickles by hand ---- */

struct pickle {
    const char *what, *bytes;
    size_t n;
};
#define PICKLE(what, bytes)                                                                        \
    {                                                                                              \
        what, bytes, sizeof(bytes) - 1                                                             \
    }
#define STORAGE                                                                                    \
    "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"                                             \
    "0X\3\0\0\0cpuK\4tQ"
#define HOOKS                                                                                      \
    "\x89"                                                                                         \
    "ccollections\nOrderedDict\n)R"
#define HUGE "\x8a\6\0\0\0\0\0\1" /* 2^40 */
#define TENSOR(rest) "\x80\2}X\1\0\0\0xctorch._utils\n_rebuild_tensor_v2\n(" STORAGE rest "tRs."

static const struct pickle good[] = {
    PICKLE("a row-major tensor", TENSOR("K\0K\2K\2\x86K\2K\1\x86" HOOKS)),
    PICKLE("its transpose", TENSOR("K\0K\2K\2\x86K\1K\2\x86" HOOKS)),
    PICKLE("the last element", TENSOR("K\3K\1\x85K\1\x85" HOOKS)),
    PICKLE("a repeated element", TENSOR("K\3K\7\x85K\0\x85" HOOKS)),
    PICKLE("no elements, far away", TENSOR("K\0K\0K\7\x86K\7K\1\x86" HOOKS)),
    PICKLE("long integers", TENSOR("\x8a\1\0\x8a\0\x85J\1\0\0\0\x85" HOOKS)),
    PICKLE("no tensors", "\x80\2}."),
    PICKLE("an OrderedDict", "\x80\2ccollections\nOrderedDict\n)R."),
};

static const struct pickle bad[] = {
    PICKLE("nothing", ""),
    PICKLE("protocol alone", "\x80\2"),
    PICKLE("stop alone", "\x80\2."),
    PICKLE("something left over", "\x80\2}}."),
    PICKLE("bytes after the end", "\x80\2}.}"),
    PICKLE("a tuple", "\x80\2)."),
    PICKLE("a mark", "\x80\2(."),
    PICKLE("unknown opcode", "\x80\2\xff."),
    PICKLE("an offset beyond the end", TENSOR("K\4K\1\x85K\1\x85" HOOKS)),
    PICKLE("a row too many", TENSOR("K\0K\3K\2\x86K\2K\1\x86" HOOKS)),
    PICKLE("a stride too long", TENSOR("K\0K\2K\2\x86K\3K\1\x86" HOOKS)),
    PICKLE("a negative offset", TENSOR("J\xff\xff\xff\xffK\1\x85K\1\x85" HOOKS)),
    PICKLE("a negative size", TENSOR("K\0J\xff\xff\xff\xff\x85K\1\x85" HOOKS)),
    PICKLE("a negative stride", TENSOR("K\3K\2\x85\x8a\1\xff\x85" HOOKS)),
    PICKLE("more sizes than strides", TENSOR("K\0K\2K\2\x86K\2\x85" HOOKS)),
    PICKLE("nine dimensions",
           TENSOR("K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1t(K\1K\1K\1K\1K\1K\1K\1K\1K\1t" HOOKS)),
    PICKLE("sizes that overflow",
           TENSOR("K\0\x8a\7\0\0\0\0\0\0@\x8a\7\0\0\0\0\0\0@\x86K\0K\0\x86" HOOKS)),
    PICKLE("sizes of no elements that overflow",
           TENSOR("K\0(K\0" HUGE HUGE HUGE "K\0t(K\0K\0K\0K\0K\0t" HOOKS)),
    PICKLE("a stride that overflows",
           TENSOR("K\0K\3\x85\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f\x85" HOOKS)),
    PICKLE("2^60 times one element", TENSOR("K\0\x8a\x8\0\0\0\0\0\0\0\x10\x85K\0\x85" HOOKS)),
    PICKLE("an integer of 9 bytes", TENSOR("K\0\x8a\x9\1\0\0\0\0\0\0\0\0\x85K\1\x85" HOOKS)),
    PICKLE("no hooks", TENSOR("K\0K\1\x85K\1\x85\x89")),
    PICKLE("hooks that are none", TENSOR("K\0K\1\x85K\1\x85\x89N")),
    PICKLE("one argument more", TENSOR("K\0K\1\x85K\1\x85" HOOKS "N")),
    PICKLE("a shape that is a dict", TENSOR("K\0}K\1\x85" HOOKS)),
    PICKLE("a dict as a shape's size", TENSOR("K\0}\x85K\1\x85" HOOKS)),
    PICKLE("a global called", "\x80\2ctorch\nFloatStorage\n)R."),
    PICKLE("a tuple called", "\x80\2))R."),
    PICKLE("a storage as the value", "\x80\2}X\1\0\0\0x" STORAGE "s."),
    PICKLE("a persistent id that is none", "\x80\2}X\1\0\0\0xNQs."),
    PICKLE("an empty persistent id", "\x80\2}X\1\0\0\0x)Qs."),
    PICKLE("items of no dictionary", "\x80\2)(u."),
    PICKLE("items without a mark", "\x80\2}u."),
    PICKLE("an odd number of items", "\x80\2}(X\1\0\0\0xu."),
    PICKLE("items below the mark", "\x80\2}X\1\0\0\0x(NNu."),
    PICKLE("a dictionary in itself", "\x80\2}q\0X\1\0\0\0xh\0s."),
    PICKLE("memo never filled", "\x80\2h\0."),
    PICKLE("memo index too large", "\x80\2}r\xff\xff\xff\xff."),
    PICKLE("memo of a mark", "\x80\2}(q\0u."),
    PICKLE("memo of nothing", "\x80\2q\0}."),
    PICKLE("a string that ends early", "\x80\2}X\xff\0\0\0x."),
    PICKLE("a string of 4 GB", "\x80\2}X\xff\xff\xff\xffx."),
    PICKLE("a name with NUL", "\x80\2}X\3\0\0\0x\0yNs."),
    PICKLE("a name not UTF-8", "\x80\2}X\2\0\0\0\xc0\x80Ns."),
    PICKLE("a surrogate", "\x80\2}X\3\0\0\0\xed\xa0\x80Ns."),
    PICKLE("beyond Unicode", "\x80\2}X\4\0\0\0\xf4\x90\x80\x80Ns."),
    PICKLE("a global without its second line", "\x80\2ccollections\n"),
    PICKLE("a global with NUL", "\x80\2ccollections\0x\nOrderedDict\n)R."),
    PICKLE("a mark in a short tuple", "\x80\2((\x86."),
};

/* archive_of - a .pt file with this pickle and a storage of four floats */
static struct bytes archive_of(const struct pickle *pickle)
{
    static const float values[] = {1, 2, 3, 4};
    const struct pt_named_entry entries[] = {
        {"data.pkl", {pickle->bytes, pickle->n}},
        {"data/0", {values, sizeof values}},
    };
    const char *path = temporary_path("by_hand.pt");
    ck_assert_int_eq(pt_zip_write(path, entries, 2), 0);
    return bytes_of_file(path);
}

START_TEST(pickles_that_are_read)
{
    SCOPE;
    struct bytes file = archive_of(&good[_i]);
    struct named_tensors *list = tensors_parse(file.at, file.n);
    check_no_error();
    ck_assert_msg(list != NULL, "%s", good[_i].what);
}
END_TEST

START_TEST(transposed_values)
{
    SCOPE;
    struct bytes file = archive_of(&good[1]);
    struct tensor *x = tensors_parse(file.at, file.n)->at[0].tensor;
    ck_assert_double_eq(tensor_get(x, 0, 1), 3);
    ck_assert_double_eq(tensor_get(x, 1, 0), 2);
    ck_assert(tensor_is_contiguous(x));
}
END_TEST

START_TEST(pickles_that_are_refused)
{
    SCOPE;
    struct bytes file = archive_of(&bad[_i]);
    ck_assert_msg(tensors_parse(file.at, file.n) == NULL, "%s", bad[_i].what);
    check_raised(&ValueError, bad[_i].what);
}
END_TEST

START_TEST(storage_of_another_size)
{
    SCOPE;
    static const float values[] = {1, 2, 3, 4, 5};
    const size_t sizes[] = {0, 12, 15, 17, 20};
    const struct pt_named_entry entries[] = {
        {"data.pkl", {good[0].bytes, good[0].n}},
        {"data/0", {values, sizes[_i]}},
    };
    ck_assert_int_eq(pt_zip_write(temporary_path("x.pt"), entries, 2), 0);
    ck_assert_ptr_null(tensors_load(temporary_path("x.pt")));
    check_raised(&ValueError, "size of the storage");
}
END_TEST

START_TEST(pickle_too_large)
{
    SCOPE;
    char *bytes = scope_alloc(PT_PICKLE_MAX_BYTES + 1);
    struct bytes file = archive_of(&(struct pickle){"zeros", bytes, PT_PICKLE_MAX_BYTES + 1});
    ck_assert_ptr_null(tensors_parse(file.at, file.n));
    check_raised(&ValueError, "a large pickle");
}
END_TEST

START_TEST(an_entry_is_missing)
{
    SCOPE;
    const struct pt_named_entry entry = {_i ? "data.pkl" : "data/0", {good[0].bytes, good[0].n}};
    ck_assert_int_eq(pt_zip_write(temporary_path("x.pt"), &entry, 1), 0);
    ck_assert_ptr_null(tensors_load(temporary_path("x.pt")));
    check_raised(&ValueError, "a missing entry");
}
END_TEST

START_TEST(the_same_name_twice)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "b", tensor_zeros(SHAPE(1), FLOAT32, CPU));
    named_tensors_add(list, "a", tensor_zeros(SHAPE(1), FLOAT32, CPU));
    named_tensors_add(list, "b", tensor_zeros(SHAPE(2), FLOAT32, CPU));
    ck_assert_int_eq(tensors_save(list, temporary_path("x.pt")), -1);
    check_raised(&ValueError, "saved");
    ck_assert_int_eq(temporary_count(), 0);
    struct pt_entry pickle;
    ck_assert_int_eq(pt_pickle(list, &pickle), 0);
    const struct pt_named_entry entries[] = {{"data.pkl", pickle},
                                             {"data/0", {"1234", 4}},
                                             {"data/1", {"1234", 4}},
                                             {"data/2", {"12345678", 8}}};
    ck_assert_int_eq(pt_zip_write(temporary_path("x.pt"), entries, 4), 0);
    ck_assert_ptr_null(tensors_load(temporary_path("x.pt")));
    check_raised(&ValueError, "loaded");
}
END_TEST

/* ---- damage ---- */

/* An error of a kind that fits, or tensors: never a crash. returns: whether it was read */
static bool survives(const struct bytes *file, const char *what, size_t at)
{
    SCOPE;
    struct named_tensors *list = tensors_parse(file->at, file->n);
    if (!list) {
        ck_assert_msg(error_is(&ValueError) || error_is(&MemoryError), "%s at %zu", what, at);
        error_clear();
        return false;
    }
    check_no_error();
    for (int i = 0; i < list->n; i++) {
        double *values = scope_alloc((size_t)tensor_numel(list->at[i].tensor) * sizeof *values);
        ck_assert_int_eq(tensor_read(list->at[i].tensor, values), 0);
    }
    return true;
}

/* A copy of just the size, so that a sanitizer sees a read beyond it. */
static struct bytes exact_copy(const struct bytes *file, size_t n)
{
    struct bytes copy = {n, malloc(n + !n)};
    memcpy(copy.at, file->at, n);
    return copy;
}

START_TEST(truncated_anywhere)
{
    SCOPE;
    struct bytes file = bytes_of_file("tests/golden/adapter.pt");
    for (size_t n = 0; n < file.n; n++) {
        struct bytes cut = exact_copy(&file, n);
        ck_assert_msg(!survives(&cut, "cut", n), "read when cut at %zu", n);
        free(cut.at);
    }
    ck_assert(survives(&file, "whole", 0));
}
END_TEST

static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x20};

START_TEST(one_byte_changed)
{
    SCOPE;
    struct bytes file = bytes_of_file("tests/golden/adapter.pt");
    size_t refusals = 0;
    for (size_t i = 0; i < file.n; i++) {
        struct bytes changed = exact_copy(&file, file.n);
        changed.at[i] ^= changes[_i];
        refusals += !survives(&changed, "changed", i);
        free(changed.at);
    }
    ck_assert_uint_gt(refusals, file.n / 2); /* the rest are dates, padding, unused fields */
}
END_TEST

/* Without the container's CRC in the way: the pickle itself, truncated and changed. */
START_TEST(one_byte_of_the_pickle_changed)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "a", tensor_zeros(SHAPE(2, 3), FLOAT32, CPU));
    named_tensors_add(list, "b", tensor_zeros(SHAPE(70000), FLOAT64, CPU));
    struct pt_entry pickle;
    ck_assert_int_eq(pt_pickle(list, &pickle), 0);
    const struct bytes whole = {pickle.n, (uint8_t *)pickle.bytes};
    for (size_t i = 0; i < whole.n; i++)
        for (int value = 0; value < 256; value++) {
            SCOPE;
            struct bytes changed = exact_copy(&whole, whole.n);
            changed.at[i] = (uint8_t)value;
            if (!pt_unpickle(&(struct pt_entry){changed.at, changed.n}))
                check_raised(&ValueError, "changed");
            struct bytes cut = exact_copy(&changed, i);
            ck_assert_ptr_null(pt_unpickle(&(struct pt_entry){cut.at, cut.n}));
            check_raised(&ValueError, "cut");
            free(cut.at);
            free(changed.at);
        }
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

static void add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, pickles_that_are_read, 0, COUNT(good));
    tcase_add_test(tests, transposed_values);
    tcase_add_loop_test(tests, pickles_that_are_refused, 0, COUNT(bad));
    tcase_add_loop_test(tests, storage_of_another_size, 0, 5);
    tcase_add_test(tests, pickle_too_large);
    tcase_add_loop_test(tests, an_entry_is_missing, 0, 2);
    tcase_add_test(tests, the_same_name_twice);
    tcase_add_test(tests, truncated_anywhere);
    tcase_add_loop_test(tests, one_byte_changed, 0, COUNT(changes));
    tcase_add_test(tests, one_byte_of_the_pickle_changed);
}

int main(void)
{
    Suite *suite = suite_create("pickle");
    TCase *tests = tcase_create("pickle");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, temporary_create, temporary_remove);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

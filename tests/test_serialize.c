/* .pt files: round trips, what torch.save wrote, and hostile bytes. With arguments it is a tool for
 * torch_adapter.py: `test_serialize copy FROM TO` loads a file and saves what it held. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "runtime/pt_internal.h"
#include "runtime/serialize.h"
#include "tests/golden.h"

/* ---- a folder of the test's own ---- */

static char folder[64];

static void make_folder(void)
{
    strcpy(folder, "/tmp/test_serialize_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *name)
{
    return scope_printf("%s/%s", folder, name);
}

struct bytes {
    size_t n;
    uint8_t *at;
};

static struct bytes read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    fseek(file, 0, SEEK_END);
    struct bytes bytes = {.n = (size_t)ftell(file)};
    bytes.at = scope_alloc(bytes.n);
    rewind(file);
    ck_assert_uint_eq(fread(bytes.at, 1, bytes.n, file), bytes.n);
    fclose(file);
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

static int count_files(void)
{
    char command[128];
    int count = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *pipe = popen(command, "r");
    ck_assert_int_eq(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    return count;
}

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
    const char *path = path_of("various.pt");
    ck_assert_int_eq(tensors_save(various(), path), 0);
    check_same(tensors_load(path), various());
    struct bytes bytes = read_file(path);
    check_same(tensors_parse(bytes.at, bytes.n), various());
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(no_tensors_at_all)
{
    SCOPE;
    ck_assert_int_eq(tensors_save(named_tensors_new(), path_of("none.pt")), 0);
    check_same(tensors_load(path_of("none.pt")), named_tensors_new());
}
END_TEST

START_TEST(many_tensors)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    for (int i = 0; i < 700; i++)
        named_tensors_add(list, scope_printf("layer%d", i), counting(SHAPE(i % 7 + 1), FLOAT32));
    ck_assert_int_eq(tensors_save(list, path_of("many.pt")), 0);
    check_same(tensors_load(path_of("many.pt")), list);
}
END_TEST

START_TEST(same_tensors_same_file)
{
    SCOPE;
    ck_assert_int_eq(tensors_save(various(), path_of("one.pt")), 0);
    ck_assert_int_eq(tensors_save(various(), path_of("two.pt")), 0);
    struct bytes one = read_file(path_of("one.pt")), two = read_file(path_of("two.pt"));
    ck_assert_uint_eq(one.n, two.n);
    ck_assert_mem_eq(one.at, two.at, one.n);
}
END_TEST

START_TEST(loaded_tensors_are_plain)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "x", tensor_set_requires_grad(counting(SHAPE(2), FLOAT32), true));
    ck_assert_int_eq(tensors_save(list, path_of("x.pt")), 0);
    ck_assert(!tensor_requires_grad(tensors_load(path_of("x.pt"))->at[0].tensor));
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
    const char *path = path_of("by_hand.pt");
    ck_assert_int_eq(pt_zip_write(path, entries, 2), 0);
    return read_file(path);
}

START_TEST(pickles_that_are_read)
{
    SCOPE;
    struct bytes file = archive_of(&good[_i]);
    ck_assert_msg(tensors_parse(file.at, file.n) != NULL, "%s: %s", good[_i].what,
                  error_message(error_pending()));
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
    ck_assert_int_eq(pt_zip_write(path_of("x.pt"), entries, 2), 0);
    ck_assert_ptr_null(tensors_load(path_of("x.pt")));
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
    ck_assert_int_eq(pt_zip_write(path_of("x.pt"), &entry, 1), 0);
    ck_assert_ptr_null(tensors_load(path_of("x.pt")));
    check_raised(&ValueError, "a missing entry");
}
END_TEST

START_TEST(the_same_name_twice)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "b", counting(SHAPE(1), FLOAT32));
    named_tensors_add(list, "a", counting(SHAPE(1), FLOAT32));
    named_tensors_add(list, "b", counting(SHAPE(2), FLOAT32));
    ck_assert_int_eq(tensors_save(list, path_of("x.pt")), -1);
    check_raised(&ValueError, "saved");
    ck_assert_int_eq(count_files(), 0);
    struct pt_entry pickle;
    ck_assert_int_eq(pt_pickle(list, &pickle), 0);
    const struct pt_named_entry entries[] = {{"data.pkl", pickle},
                                             {"data/0", {"1234", 4}},
                                             {"data/1", {"1234", 4}},
                                             {"data/2", {"12345678", 8}}};
    ck_assert_int_eq(pt_zip_write(path_of("x.pt"), entries, 4), 0);
    ck_assert_ptr_null(tensors_load(path_of("x.pt")));
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
    struct bytes file = read_file("tests/golden/adapter.pt");
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
    struct bytes file = read_file("tests/golden/adapter.pt");
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
    named_tensors_add(list, "a", counting(SHAPE(2, 3), FLOAT32));
    named_tensors_add(list, "b", counting(SHAPE(70000), FLOAT64));
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

/* ---- the file system ---- */

START_TEST(unreadable)
{
    SCOPE;
    const char *paths[] = {path_of("missing.pt"), folder, path_of("fifo"), "/dev/null",
                           path_of("no/such/folder.pt")};
    ck_assert_int_eq(mkfifo(path_of("fifo"), 0600), 0);
    ck_assert_ptr_null(tensors_load(paths[_i]));
    ck_assert_ptr_nonnull(strstr(error_message(error_pending()), paths[_i]));
    check_raised(&OSError, paths[_i]);
}
END_TEST

START_TEST(empty_file)
{
    SCOPE;
    write_file(path_of("x.pt"), "", 0);
    ck_assert_ptr_null(tensors_load(path_of("x.pt")));
    check_raised(&ValueError, "an empty file");
}
END_TEST

START_TEST(unwritable)
{
    SCOPE;
    const char *paths[] = {path_of("no/such/folder.pt"), folder, "/dev/full"};
    const int before = count_files();
    ck_assert_int_eq(tensors_save(various(), paths[_i]), -1);
    ck_assert_ptr_nonnull(strstr(error_message(error_pending()), paths[_i]));
    check_raised(&OSError, paths[_i]);
    ck_assert_int_eq(count_files(), before);
}
END_TEST

START_TEST(overwrites_whole)
{
    SCOPE;
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "x", counting(SHAPE(2), FLOAT32));
    write_file(path_of("x.pt"), "something else", 14);
    ck_assert_int_eq(tensors_save(various(), path_of("x.pt")), 0);
    ck_assert_int_eq(tensors_save(list, path_of("x.pt")), 0);
    check_same(tensors_load(path_of("x.pt")), list);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

/* What was there stays when the new file cannot be written to its end. */
START_TEST(a_failed_save_leaves_the_old_file)
{
    SCOPE;
    write_file(path_of("x.pt"), "the old file", 12);
    struct named_tensors *list = named_tensors_new();
    named_tensors_add(list, "not \xff text", counting(SHAPE(2), FLOAT32));
    ck_assert_int_eq(tensors_save(list, path_of("x.pt")), -1);
    check_raised(&ValueError, "a name that is not UTF-8");
    struct bytes left = read_file(path_of("x.pt"));
    ck_assert_uint_eq(left.n, 12);
    ck_assert_mem_eq(left.at, "the old file", 12);
}
END_TEST

/* ---- registration ---- */

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

static void add_files(TCase *files)
{
    tcase_add_test(files, round_trip);
    tcase_add_test(files, no_tensors_at_all);
    tcase_add_test(files, many_tensors);
    tcase_add_test(files, same_tensors_same_file);
    tcase_add_test(files, loaded_tensors_are_plain);
    tcase_add_test(files, null_passes_through);
    tcase_add_loop_test(files, what_torch_saved, 0, COUNT(saved));
    tcase_add_loop_test(files, what_is_refused, 0, COUNT(refused));
    tcase_add_loop_test(files, unreadable, 0, 5);
    tcase_add_test(files, empty_file);
    tcase_add_loop_test(files, unwritable, 0, 3);
    tcase_add_test(files, overwrites_whole);
    tcase_add_test(files, a_failed_save_leaves_the_old_file);
}

static void add_hostile(TCase *hostile)
{
    tcase_add_loop_test(hostile, pickles_that_are_read, 0, COUNT(good));
    tcase_add_test(hostile, transposed_values);
    tcase_add_loop_test(hostile, pickles_that_are_refused, 0, COUNT(bad));
    tcase_add_loop_test(hostile, storage_of_another_size, 0, 5);
    tcase_add_test(hostile, pickle_too_large);
    tcase_add_loop_test(hostile, an_entry_is_missing, 0, 2);
    tcase_add_test(hostile, the_same_name_twice);
    tcase_add_test(hostile, truncated_anywhere);
    tcase_add_loop_test(hostile, one_byte_changed, 0, COUNT(changes));
    tcase_add_test(hostile, one_byte_of_the_pickle_changed);
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
    TCase *cases[] = {tcase_create("files"), tcase_create("hostile")};
    for (int i = 0; i < 2; i++) {
        tcase_set_timeout(cases[i], 60);
        tcase_add_checked_fixture(cases[i], make_folder, remove_folder);
        suite_add_tcase(suite, cases[i]);
    }
    add_files(cases[0]);
    add_hostile(cases[1]);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

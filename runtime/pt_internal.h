#ifndef RUNTIME_PT_INTERNAL_H
#define RUNTIME_PT_INTERNAL_H
/* pt_internal.h - the parts of a .pt file, and reading one from memory.
 *
 * A .pt file is a zip archive of stored (uncompressed) entries:
 *
 *     archive/data.pkl     a pickle of the dictionary; each tensor names its storage
 *     archive/byteorder    "little"
 *     archive/data/0, ...  the bytes of storage "0", ...
 *     archive/version      "3\n"
 *
 * pt_zip.c knows the container, pt_pickle.c writes data.pkl, pt_unpickle.c reads it, serialize.c
 * joins them. Memory that these return is borrowed from the scope. */
#include <stddef.h>
#include <stdint.h>

#include "runtime/nn.h"

/* tensors_parse - what tensors_load gives for a file with these n bytes. errors: ValueError */
struct named_tensors *tensors_parse(const void *bytes, size_t n);

/* ---- pt_zip.c ---- */

/* pt_zip - an archive opened for reading. Safe on hostile files: an entry is read once, its CRC is
 * checked, and all entries together must fit into the file, so that nothing can be blown up. */
struct pt_zip {
    struct zip *zip;
    uint64_t bytes;     /* of the whole file */
    uint64_t unclaimed; /* how many of them the entries read so far leave over */
    const char *folder; /* "archive": all entries lie in it */
    struct pt_entry *entries;
};
struct pt_entry {
    const void *bytes; /* NULL until read */
    size_t n;
};

/* pt_zip_open_file, pt_zip_open_bytes - fill *zip; pt_zip_close it whatever they return.
 * errors: -1, with OSError if the file cannot be read, ValueError if it is no such archive */
int pt_zip_open_file(struct pt_zip *zip, const char *path);
int pt_zip_open_bytes(struct pt_zip *zip, const void *bytes, size_t n);
void pt_zip_close(struct pt_zip *zip);

/* pt_zip_has, pt_zip_read - the entry "FOLDER/NAME". errors: NULL, with ValueError */
bool pt_zip_has(const struct pt_zip *zip, const char *name);
const struct pt_entry *pt_zip_read(struct pt_zip *zip, const char *name);

/* pt_zip_write - write an archive with these entries beside `path`, then rename it
 * errors: -1, with OSError naming the path */
struct pt_named_entry {
    const char *name;
    struct pt_entry entry;
};
int pt_zip_write(const char *path, const struct pt_named_entry *entries, int n);

/* ---- pt_pickle.c ---- */

/* pt_pickle - data.pkl for these tensors, row-major, the i-th with storage "i". errors: -1 */
int pt_pickle(const struct named_tensors *tensors, struct pt_entry *pickle);

/* ---- pt_unpickle.c ---- */

enum { PT_PICKLE_MAX_BYTES = 1 << 20 }; /* some 6,000 tensors */

/* pt_tensor - what the pickle says of a tensor. Offset, shape and strides have been checked to lie
 * within storage_numel elements. */
struct pt_tensor {
    const char *storage;
    int64_t storage_numel;
    enum dtype dtype;
    int ndim;
    int64_t offset, numel;
    int64_t shape[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
};
struct pt_item {
    const char *name;
    const struct pt_tensor *tensor;
};
struct pt_items {
    int64_t n;
    struct pt_item *at;
};

/* pt_unpickle - the items of the flat dictionary of tensors that a pickle holds, in its order
 * errors: NULL, with ValueError naming the opcode, global or entry that is refused */
struct pt_items *pt_unpickle(const struct pt_entry *pickle);

/* ---- pt_text.c ---- */

/* pt_text_check - n bytes are UTF-8 without NUL. errors: -1, with ValueError */
int pt_text_check(const char *text, size_t n);
#endif

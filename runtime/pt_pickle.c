#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/pt_internal.h"
#include "runtime/scope.h"

/* Pickle protocol 2, without memo: nothing is referred to twice. For the opcodes see Python's
 * pickletools.py. */

static void put_little_endian(FILE *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(value >> 8 * i & 0xff), out);
}

static void put_int(FILE *out, int64_t value)
{
    if (value <= UINT8_MAX) {
        putc('K', out); /* BININT1 */
        put_little_endian(out, (uint64_t)value, 1);
    } else if (value <= INT32_MAX) {
        putc('J', out); /* BININT */
        put_little_endian(out, (uint64_t)value, 4);
    } else {
        fputs("\x8a\x08", out); /* LONG1 of 8 bytes */
        put_little_endian(out, (uint64_t)value, 8);
    }
}

static void put_text(FILE *out, const char *text)
{
    putc('X', out); /* BINUNICODE */
    put_little_endian(out, strlen(text), 4);
    fputs(text, out);
}

static void put_tuple(FILE *out, const int64_t *values, int n)
{
    putc('(', out); /* MARK */
    for (int i = 0; i < n; i++)
        put_int(out, values[i]);
    putc('t', out); /* TUPLE */
}

static void row_major_strides(const struct tensor *tensor, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = tensor_ndim(tensor) - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= tensor_size(tensor, i) > 0 ? tensor_size(tensor, i) : 1;
    }
}

/* ('storage', torch.FloatStorage, '0', 'cpu', numel) as a persistent id */
static void put_storage(FILE *out, const struct tensor *tensor, int index)
{
    static const char *const types[] = {
        [FLOAT32] = "FloatStorage", [FLOAT64] = "DoubleStorage", [FLOAT16] = "HalfStorage"};
    char key[16];
    snprintf(key, sizeof key, "%d", index);
    putc('(', out);
    put_text(out, "storage");
    fprintf(out, "ctorch\n%s\n", types[tensor_dtype(tensor)]); /* GLOBAL */
    put_text(out, key);
    put_text(out, "cpu");
    put_int(out, tensor_numel(tensor));
    fputs("tQ", out); /* TUPLE, BINPERSID */
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks) */
static void put_tensor(FILE *out, const struct tensor *tensor, int index)
{
    int64_t strides[TENSOR_MAX_DIMS];
    row_major_strides(tensor, strides);
    fputs("ctorch._utils\n_rebuild_tensor_v2\n(", out);
    put_storage(out, tensor, index);
    put_int(out, 0);
    put_tuple(out, tensor_shape(tensor), tensor_ndim(tensor));
    put_tuple(out, strides, tensor_ndim(tensor));
    putc(0x89, out);                               /* NEWFALSE */
    fputs("ccollections\nOrderedDict\n)RtR", out); /* EMPTY_TUPLE, REDUCE, TUPLE, REDUCE */
}

static void put_dictionary(FILE *out, const struct named_tensors *tensors)
{
    fputs("\x80\x02}(", out); /* PROTO 2, EMPTY_DICT, MARK */
    for (int i = 0; i < tensors->n; i++) {
        put_text(out, tensors->at[i].name);
        put_tensor(out, tensors->at[i].tensor, i);
    }
    fputs("u.", out); /* SETITEMS, STOP */
}

/* into_scope - move n malloc'ed bytes into the scope */
static int into_scope(struct pt_entry *entry, char *bytes, size_t n)
{
    void *copy = scope_alloc(n);
    if (copy)
        memcpy(copy, bytes, n);
    free(bytes);
    *entry = (struct pt_entry){copy, n};
    return copy ? 0 : -1;
}

int pt_pickle(const struct named_tensors *tensors, struct pt_entry *pickle)
{
    char *bytes = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&bytes, &n);
    if (!out)
        return raise_error(MemoryError, "out of memory for the dictionary of a .pt file");
    put_dictionary(out, tensors);
    const bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(bytes);
        return raise_error(MemoryError, "out of memory for the dictionary of a .pt file");
    }
    return into_scope(pickle, bytes, n);
}

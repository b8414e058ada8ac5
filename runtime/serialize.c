#include "runtime/serialize.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/pt_internal.h"
#include "runtime/scope.h"

/* ---- both ways ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_names(const struct named_tensors *tensors)
{
    const char **names = scope_alloc((size_t)tensors->n * sizeof *names);
    if (!names)
        return -1;
    for (int i = 0; i < tensors->n; i++) {
        names[i] = tensors->at[i].name;
        if (pt_text_check(names[i], strlen(names[i])) < 0)
            return -1;
    }
    qsort(names, (size_t)tensors->n, sizeof *names, compare_names);
    for (int i = 1; i < tensors->n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return raise_error(ValueError, "two tensors have the name \"%s\"", names[i]);
    return 0;
}

/* ---- saving ---- */

/* The bytes of a tensor, in row-major order on the CPU, for as long as the scope lasts. */
static int bytes_of(struct tensor *tensor, struct pt_entry *entry)
{
    struct tensor *on_cpu = tensor_contiguous(tensor_to(tensor, CPU));
    if (!on_cpu)
        return -1;
    entry->bytes = tensor_data(on_cpu);
    entry->n = (size_t)tensor_numel(on_cpu) * (size_t)dtype_size(tensor_dtype(on_cpu));
    return 0;
}

static int add_storages(const struct named_tensors *tensors, struct pt_named_entry *entries)
{
    for (int i = 0; i < tensors->n; i++) {
        entries[i].name = scope_printf("data/%d", i);
        if (!entries[i].name || bytes_of(tensors->at[i].tensor, &entries[i].entry) < 0)
            return -1;
    }
    return 0;
}

int tensors_save(const struct named_tensors *tensors, const char *path)
{
    if (!tensors || !path)
        return -1;
    SCOPE;
    NO_GRAD;
    const int n = tensors->n + 3;
    struct pt_named_entry *entries = scope_alloc((size_t)n * sizeof *entries);
    if (!entries || check_names(tensors) < 0)
        return -1;
    entries[0].name = "data.pkl"; /* torch wants it first */
    entries[1] = (struct pt_named_entry){"byteorder", {"little", 6}};
    entries[n - 1] = (struct pt_named_entry){"version", {"3\n", 2}};
    if (pt_pickle(tensors, &entries[0].entry) < 0 || add_storages(tensors, entries + 2) < 0)
        return -1;
    return pt_zip_write(path, entries, n);
}

/* ---- loading ---- */

/* gather - elements of a strided tensor, from dimension `dim` on, in row-major order
 * returns: where the next one goes */
static char *gather(char *to, const char *from, const struct pt_tensor *tensor, int dim)
{
    const int64_t size = dtype_size(tensor->dtype);
    const int64_t run = dim == tensor->ndim ? 1 : tensor->shape[dim];
    if (dim == tensor->ndim || (dim == tensor->ndim - 1 && tensor->strides[dim] == 1))
        return (char *)memcpy(to, from, (size_t)(run * size)) + run * size;
    for (int64_t i = 0; i < run; i++)
        to = gather(to, from + i * tensor->strides[dim] * size, tensor, dim + 1);
    return to;
}

static const char *storage_bytes(struct pt_zip *zip, const struct pt_tensor *tensor)
{
    const size_t size = (size_t)dtype_size(tensor->dtype);
    const char *name = scope_printf("data/%s", tensor->storage);
    const struct pt_entry *entry = name ? pt_zip_read(zip, name) : NULL;
    if (entry && (entry->n % size || entry->n / size != (size_t)tensor->storage_numel))
        return raise_null(ValueError, "%s has %zu bytes, but data.pkl says %lld elements of %s",
                          name, entry->n, (long long)tensor->storage_numel,
                          dtype_name(tensor->dtype));
    return entry ? entry->bytes : NULL;
}

/* Tensors may share a storage or repeat its elements, so a small file could stand for a huge amount
 * of memory; honest ones stay far within this. */
static int spend(const struct pt_zip *zip, uint64_t *spent, const struct pt_tensor *tensor)
{
    const uint64_t allowed = 16 * zip->bytes + (64 << 20),
                   size = (uint64_t)dtype_size(tensor->dtype);
    if ((uint64_t)tensor->numel > (allowed - *spent) / size)
        return raise_error(ValueError, "the tensors are far larger than the file");
    *spent += (uint64_t)tensor->numel * size;
    return 0;
}

static struct tensor *load_tensor(struct pt_zip *zip, const struct pt_tensor *described)
{
    const char *bytes = storage_bytes(zip, described);
    if (!bytes)
        return NULL;
    struct tensor *tensor = tensor_empty(described->ndim, described->shape, described->dtype, CPU);
    if (tensor && described->numel > 0)
        gather(tensor_data(tensor), bytes + described->offset * dtype_size(described->dtype),
               described, 0);
    return tensor;
}

static int load_items(struct pt_zip *zip, const struct pt_items *items, struct named_tensors *list)
{
    uint64_t spent = 0;
    for (int64_t i = 0; i < items->n; i++) {
        const struct pt_item *item = &items->at[i];
        if (spend(zip, &spent, item->tensor) < 0 ||
            named_tensors_add(list, item->name, load_tensor(zip, item->tensor)) < 0)
            return -1;
    }
    return check_names(list);
}

static int check_byte_order(struct pt_zip *zip)
{
    if (!pt_zip_has(zip, "byteorder"))
        return 0;
    const struct pt_entry *order = pt_zip_read(zip, "byteorder");
    if (order && (order->n != 6 || memcmp(order->bytes, "little", 6) != 0))
        return raise_error(ValueError, "the file's byte order is not little");
    return order ? 0 : -1;
}

static int load_archive(struct pt_zip *zip, struct named_tensors *list)
{
    const struct pt_entry *pickle =
        check_byte_order(zip) == 0 ? pt_zip_read(zip, "data.pkl") : NULL;
    const struct pt_items *items = pickle ? pt_unpickle(pickle) : NULL;
    return items ? load_items(zip, items, list) : -1;
}

/* load_and_close - fill the list from an archive, if it could be opened */
static struct named_tensors *load_and_close(struct pt_zip *zip, int opened,
                                            struct named_tensors *list)
{
    const int result = opened == 0 && list ? load_archive(zip, list) : -1;
    pt_zip_close(zip);
    return result == 0 ? list : NULL;
}

struct named_tensors *tensors_parse(const void *bytes, size_t n)
{
    struct named_tensors *list = named_tensors_new();
    SCOPE; /* for all that is needed on the way only */
    struct pt_zip zip;
    return load_and_close(&zip, pt_zip_open_bytes(&zip, bytes, n), list);
}

/* name_file - put the path in front of the pending error's message */
static void name_file(const char *path)
{
    struct error *error = error_take();
    if (!error)
        return;
    error_set(error_type_of(error), error_file(error), error_line(error), "%s: %s", path,
              error_message(error));
    error_free(error);
}

struct named_tensors *tensors_load(const char *path)
{
    if (!path)
        return NULL;
    struct named_tensors *list = named_tensors_new();
    SCOPE;
    struct pt_zip zip;
    list = load_and_close(&zip, pt_zip_open_file(&zip, path), list);
    if (!list)
        name_file(path);
    return list;
}

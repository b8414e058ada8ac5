#include "runtime/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/autograd_internal.h"
#include "runtime/error.h"
#include "runtime/memory_internal.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"

const char *dtype_name(enum dtype dtype)
{
    static const char *const names[] = {"float32", "float64", "float16"};
    return names[dtype];
}

int dtype_size(enum dtype dtype)
{
    static const int sizes[] = {4, 8, 2};
    return sizes[dtype];
}

/* ---- storage ---- */

static void storage_destroy(struct object *object)
{
    struct storage *storage = (struct storage *)object;
    if (storage->ready)
        storage->table->forget(storage);
    storage->table->free(storage->device.index, storage->memory, storage->bytes);
    free(storage);
}

static struct storage *storage_new(size_t bytes, struct device device)
{
    const struct device_table *table = device_table_of(device);
    if (!table)
        return NULL;
    struct storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return raise_null(MemoryError, "out of memory for a tensor");
    object_init(&storage->object, storage_destroy);
    storage->table = table;
    storage->device = device;
    storage->bytes = bytes ? bytes : 1;
    storage->memory = table->alloc(device.index, storage->bytes);
    if (!storage->memory) {
        free(storage);
        return NULL;
    }
    return storage;
}

/* ---- making tensors ---- */

static void tensor_destroy(struct object *object)
{
    struct tensor *x = (struct tensor *)object;
    object_release((struct object *)x->node);
    tensor_release(x->leaf.grad);
    pthread_mutex_destroy(&x->leaf.lock);
    object_release(&x->storage->object);
    memory_delete(x);
}

int tensor_set_shape(struct tensor *x, int ndim, const int64_t *shape)
{
    if (ndim < 0 || ndim > TENSOR_MAX_DIMS)
        return raise_error(ValueError, "a tensor has 0 to %d dimensions, not %d", TENSOR_MAX_DIMS,
                           ndim);
    x->ndim = ndim;
    x->numel = 1;
    int64_t stride = 1; /* a size of 0 counts as 1 here, or what follows it could overflow */
    for (int d = ndim - 1; d >= 0; d--) {
        if (shape[d] < 0)
            return raise_error(ValueError, "dimension %d has a negative size, %lld", d,
                               (long long)shape[d]);
        x->shape[d] = shape[d];
        x->strides[d] = stride;
        if (__builtin_mul_overflow(stride, shape[d] ? shape[d] : 1, &stride) ||
            stride > PTRDIFF_MAX / 8)
            return raise_error(ValueError, "a tensor of that many elements does not fit in memory");
        x->numel *= shape[d];
    }
    return 0;
}

struct tensor *tensor_new(int ndim, const int64_t *shape, enum dtype dtype, struct device device)
{
    struct tensor *x = memory_new(sizeof *x);
    if (!x)
        return raise_null(MemoryError, "out of memory for a tensor");
    if (tensor_set_shape(x, ndim, shape) == 0)
        x->storage = storage_new((size_t)x->numel * (size_t)dtype_size(dtype), device);
    if (!x->storage) {
        memory_delete(x);
        return NULL;
    }
    object_init(&x->object, tensor_destroy);
    pthread_mutex_init(&x->leaf.lock, NULL);
    x->dtype = dtype;
    x->data = x->storage->memory;
    return x;
}

struct tensor *tensor_alias(const struct tensor *x)
{
    struct tensor *alias = memory_new(sizeof *alias);
    if (!alias)
        return raise_null(MemoryError, "out of memory for a tensor");
    object_init(&alias->object, tensor_destroy);
    pthread_mutex_init(&alias->leaf.lock, NULL);
    alias->storage = x->storage;
    object_retain(&x->storage->object);
    alias->data = x->data;
    alias->dtype = x->dtype;
    alias->ndim = x->ndim;
    alias->numel = x->numel;
    memcpy(alias->shape, x->shape, sizeof alias->shape);
    memcpy(alias->strides, x->strides, sizeof alias->strides);
    return alias;
}

struct tensor *tensor_own(struct tensor *x)
{
    return x ? scope_own(&x->object) : NULL;
}

struct tensor *tensor_empty(int ndim, const int64_t *shape, enum dtype dtype, struct device device)
{
    return tensor_own(tensor_new(ndim, shape, dtype, device));
}

struct tensor *tensor_empty_like(const struct tensor *x)
{
    return x ? tensor_empty(x->ndim, x->shape, x->dtype, x->storage->device) : NULL;
}

struct tensor *tensor_full(int ndim, const int64_t *shape, double value, enum dtype dtype,
                           struct device device)
{
    struct tensor *x = tensor_empty(ndim, shape, dtype, device);
    return x && tensor_table(x)->fill(x, value) == 0 ? x : NULL;
}

struct tensor *tensor_zeros(int ndim, const int64_t *shape, enum dtype dtype, struct device device)
{
    return tensor_full(ndim, shape, 0, dtype, device);
}

static struct tensor *from_memory(const void *values, int ndim, const int64_t *shape,
                                  enum dtype dtype)
{
    struct tensor *x = tensor_empty(ndim, shape, dtype, CPU);
    if (x && x->numel > 0)
        memcpy(x->data, values, (size_t)x->numel * (size_t)dtype_size(dtype));
    return x;
}

struct tensor *tensor_from(const float *values, int ndim, const int64_t *shape)
{
    return from_memory(values, ndim, shape, FLOAT32);
}

struct tensor *tensor_from_doubles(const double *values, int ndim, const int64_t *shape)
{
    return from_memory(values, ndim, shape, FLOAT64);
}

struct tensors *tensors_new(int n)
{
    if (n < 0)
        return raise_null(ValueError, "a list of %d tensors cannot be", n);
    struct tensors *list = scope_alloc(sizeof *list + (size_t)n * sizeof *list->at);
    if (list)
        *list = (struct tensors){n, (struct tensor **)(list + 1)};
    return list;
}

/* ---- what a tensor is ---- */

int tensor_ndim(const struct tensor *x)
{
    return x->ndim;
}

int64_t tensor_size(const struct tensor *x, int dim)
{
    return x->shape[dim < 0 ? dim + x->ndim : dim];
}

const int64_t *tensor_shape(const struct tensor *x)
{
    return x->shape;
}

const int64_t *tensor_strides(const struct tensor *x)
{
    return x->strides;
}

int64_t tensor_numel(const struct tensor *x)
{
    return x->numel;
}

enum dtype tensor_dtype(const struct tensor *x)
{
    return x->dtype;
}

struct device tensor_device(const struct tensor *x)
{
    return x->storage->device;
}

bool tensor_is_contiguous(const struct tensor *x)
{
    int64_t stride = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (x->shape[d] != 1 && x->strides[d] != stride)
            return x->numel == 0;
        stride *= x->shape[d];
    }
    return true;
}

bool tensor_same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

const char *tensor_shape_name(const struct tensor *x)
{
    char text[TENSOR_MAX_DIMS * 22 + 3] = "(";
    size_t used = 1;
    for (int d = 0; d < x->ndim; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, d ? ", %lld" : "%lld",
                                 (long long)x->shape[d]);
    return scope_printf("%s)", text);
}

void *tensor_data(const struct tensor *x)
{
    return x->data;
}

struct tensor *tensor_retain(struct tensor *x)
{
    if (x)
        object_retain(&x->object);
    return x;
}

void tensor_release(struct tensor *x)
{
    if (x)
        object_release(&x->object);
}

void tensor_modified(struct tensor *x)
{
    atomic_fetch_add_explicit(&x->storage->version, 1, memory_order_relaxed);
}

bool tensor_is_exclusive(const struct tensor *x)
{
    return atomic_load_explicit(&x->object.references, memory_order_acquire) == 1 &&
           atomic_load_explicit(&x->storage->object.references, memory_order_acquire) == 1;
}

bool tensor_is_row_major(const struct tensor *x)
{
    return (x->strides[1] == 1 || x->shape[1] == 1) &&
           (x->strides[0] >= x->shape[1] || x->shape[0] == 1);
}

struct layout tensor_layout(const struct tensor *x)
{
    bool rows = tensor_is_row_major(x);
    int outer = rows ? 0 : 1, inner = 1 - outer;
    return (struct layout){!rows, x->shape[outer] > 1 ? x->strides[outer] : x->shape[inner]};
}

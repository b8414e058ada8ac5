#ifndef RUNTIME_TENSOR_INTERNAL_H
#define RUNTIME_TENSOR_INTERNAL_H
/* tensor_internal.h - what a tensor is made of. For the runtime's own files. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "runtime/device_internal.h"
#include "runtime/object.h"
#include "runtime/tensor.h"

struct node;

/* Memory on a device. Views share it. */
struct storage {
    struct object object;
    const struct device_table *table;
    struct device device;
    void *memory;
    size_t bytes;
    atomic_uint version; /* counts changes in place, so that backward can tell */
    atomic_bool viewed;  /* some tensor is or was a view of another one's part */

    /* For a device that works behind the host's back; events of it, NULL for none. */
    void *ready;             /* what was computed in it is there; of the version that follows */
    unsigned ready_version;  /* changed since: no longer true */
    _Atomic(void *) reading; /* copies of it to other devices have been made */
};

struct tensor {
    struct object object;
    struct storage *storage;
    char *data; /* the first element */
    enum dtype dtype;
    int ndim;
    int64_t numel;
    int64_t shape[TENSOR_MAX_DIMS];
    int64_t strides[TENSOR_MAX_DIMS]; /* in elements */

    struct node *node;  /* how it was computed; NULL for a leaf */
    bool requires_grad; /* of a leaf */
    struct leaf {
        pthread_mutex_t lock; /* two backwards may add to one leaf */
        struct tensor *grad;
        void (*hook)(void *context, struct tensor *leaf);
        void *context;
    } leaf;
};

/* tensor_new - an uninitialised tensor
 * owns: the caller (one reference). errors: as tensor_empty */
struct tensor *tensor_new(int ndim, const int64_t *shape, enum dtype dtype, struct device device);

/* tensor_empty_like - uninitialised, with x's shape, dtype and device, in the current scope. NULL
 * passes through */
struct tensor *tensor_empty_like(const struct tensor *x);

/* tensor_alias - another tensor on the same storage: x's elements, without history.
 * owns: the caller. errors: NULL, with MemoryError */
struct tensor *tensor_alias(const struct tensor *x);

/* tensor_table - the operations of x's device */
static inline const struct device_table *tensor_table(const struct tensor *x)
{
    return x->storage->table;
}

/* tensor_own - give the caller's reference to the current scope; NULL passes through */
struct tensor *tensor_own(struct tensor *x);

/* tensor_set_shape - shape, row-major strides and numel. errors: -1, with ValueError */
int tensor_set_shape(struct tensor *x, int ndim, const int64_t *shape);

/* tensor_modified - whoever writes into x's memory without an operation says so afterwards */
void tensor_modified(struct tensor *x);

/* tensor_is_row_major - a matrix whose rows are contiguous and do not overlap, as BLAS wants it */
bool tensor_is_row_major(const struct tensor *x);

/* tensor_layout - how BLAS is told of a matrix that is row-major, or row-major when transposed */
struct layout {
    bool transposed;
    int64_t leading; /* elements between rows, or between columns if transposed */
};
struct layout tensor_layout(const struct tensor *x);

/* tensor_is_exclusive - nobody but the holder of one reference can see x or its memory */
bool tensor_is_exclusive(const struct tensor *x);
#endif

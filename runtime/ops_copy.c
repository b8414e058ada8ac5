/* ops_copy.c - operations that move elements unchanged: to new memory, another dtype or device. */
#include <string.h>

#include "runtime/ops.h"
#include "runtime/ops_internal.h"

/* A contiguous copy on the same device, as `dtype`, without history. */
static struct tensor *copy_of(const struct tensor *x, enum dtype dtype)
{
    struct tensor *out = tensor_empty(x->ndim, x->shape, dtype, tensor_device(x));
    return out && tensor_table(out)->copy(out, x) == 0 ? out : NULL;
}

static int clone_backward(struct backward *run)
{
    return backward_send(run, 0, run->gradient);
}

struct tensor *tensor_clone(struct tensor *x)
{
    return !x ? NULL
              : autograd_record(copy_of(x, x->dtype),
                                &(struct record){"tensor_clone", clone_backward, INPUTS(x)});
}

struct tensor *tensor_contiguous(struct tensor *x)
{
    return !x || tensor_is_contiguous(x) ? x : tensor_clone(x);
}

/* ---- dtype ---- */

static int cast_backward(struct backward *run)
{
    return backward_send(run, 0, tensor_cast(run->gradient, (enum dtype)run->node->integers[0]));
}

struct tensor *tensor_cast(struct tensor *x, enum dtype dtype)
{
    if (!x || x->dtype == dtype)
        return x;
    return autograd_record(copy_of(x, dtype), &(struct record){"tensor_cast", cast_backward,
                                                               INPUTS(x), .integers = {x->dtype}});
}

/* ---- device ---- */

/* The device that is not the CPU knows how; of two such, the target's. */
static int transfer(struct tensor *out, const struct tensor *x)
{
    const struct tensor *other = tensor_device(out).kind == DEVICE_CPU ? x : out;
    return tensor_table(other)->transfer(out, x);
}

static int to_backward(struct backward *run)
{
    const int64_t *device = run->node->integers;
    return backward_send(
        run, 0,
        tensor_to(run->gradient, (struct device){(enum device_kind)device[0], (int)device[1]}));
}

struct tensor *tensor_to(struct tensor *x, struct device device)
{
    if (!x || device_equal(tensor_device(x), device))
        return x;
    struct tensor *out = tensor_empty(x->ndim, x->shape, x->dtype, device);
    const struct tensor *source = tensor_is_contiguous(x) ? x : copy_of(x, x->dtype);
    if (!out || !source || transfer(out, source) < 0)
        return NULL;
    struct device from = tensor_device(x);
    return autograd_record(out, &(struct record){"tensor_to", to_backward, INPUTS(x),
                                                 .integers = {from.kind, from.index}});
}

/* ---- cat ---- */

static int cat_backward(struct backward *run)
{
    int64_t start = 0;
    for (int i = 0; i < run->node->inputs; i++) {
        int64_t rows = run->node->edges[i].shape[0];
        if (backward_wants(run, i) &&
            backward_send(run, i, tensor_slice(run->gradient, 0, start, rows)) < 0)
            return -1;
        start += rows;
    }
    return 0;
}

static int cat_check(const struct tensors *pieces, int64_t *rows)
{
    if (pieces->n < 1)
        return raise_error(ValueError, "tensor_cat: there is nothing to join");
    const struct tensor *first = pieces->at[0];
    for (int i = 0; i < pieces->n; i++) {
        const struct tensor *piece = pieces->at[i];
        if (!piece)
            return -1;
        if (piece->dtype != first->dtype)
            return raise_error(TypeError, "tensor_cat of %s and %s", dtype_name(first->dtype),
                               dtype_name(piece->dtype));
        if (!device_equal(tensor_device(piece), tensor_device(first)))
            return raise_error(RuntimeError, "tensor_cat of tensors on %s and %s",
                               device_name(tensor_device(first)),
                               device_name(tensor_device(piece)));
        if (piece->ndim == 0 || piece->ndim != first->ndim ||
            memcmp(piece->shape + 1, first->shape + 1,
                   (size_t)(piece->ndim - 1) * sizeof *piece->shape) != 0)
            return raise_error(ValueError,
                               "tensor_cat: %s and %s cannot be joined along dimension 0",
                               tensor_shape_name(first), tensor_shape_name(piece));
        *rows += piece->shape[0];
    }
    return 0;
}

struct tensor *tensor_cat(const struct tensors *pieces)
{
    int64_t rows = 0, start = 0;
    if (!pieces || cat_check(pieces, &rows) < 0)
        return NULL;
    int64_t shape[TENSOR_MAX_DIMS];
    const struct tensor *first = pieces->at[0];
    memcpy(shape, first->shape, sizeof shape);
    shape[0] = rows;
    struct tensor *out = tensor_empty(first->ndim, shape, first->dtype, tensor_device(first));
    for (int i = 0; out && i < pieces->n; i++) {
        const struct tensor *piece = pieces->at[i];
        struct tensor *part = op_slice(out, 0, start, piece->shape[0]);
        if (!part || tensor_table(out)->copy(part, piece) < 0)
            return NULL;
        start += piece->shape[0];
    }
    return autograd_record(
        out, &(struct record){"tensor_cat", cat_backward, .n = pieces->n, .inputs = pieces->at});
}

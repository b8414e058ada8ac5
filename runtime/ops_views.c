/* ops_views.c - operations that move no data: other shapes and strides over the same memory. */

#include "runtime/ops.h"
#include "runtime/ops_internal.h"

static struct tensor *view_of(const struct tensor *x)
{
    struct tensor *view = tensor_own(tensor_alias(x));
    if (view)
        atomic_store(&x->storage->viewed, true);
    return view;
}

/* ---- view ---- */

static int view_backward(struct backward *run)
{
    const struct edge *x = &run->node->edges[0];
    return backward_send(run, 0, tensor_view(tensor_contiguous(run->gradient), x->ndim, x->shape));
}

/* The shape with a -1 in it replaced by what makes the product numel. */
static int shape_infer(int ndim, const int64_t *asked, int64_t numel, int64_t *shape)
{
    int unknown = -1;
    int64_t known = 1;
    for (int d = 0; d < ndim; d++) {
        shape[d] = asked[d];
        if (asked[d] == -1 && unknown >= 0)
            return raise_error(ValueError, "tensor_view: only one size can be -1");
        if (asked[d] == -1)
            unknown = d;
        else if (asked[d] < 0 || __builtin_mul_overflow(known, asked[d], &known))
            return raise_error(ValueError, "tensor_view: size %lld is out of range",
                               (long long)asked[d]);
    }
    if (unknown >= 0 && known == 0)
        return raise_error(ValueError,
                           "tensor_view: -1 stands for any size here: the other sizes have a 0");
    if (unknown >= 0)
        shape[unknown] = numel / known;
    if ((unknown >= 0 ? known * shape[unknown] : known) != numel)
        return raise_error(ValueError, "tensor_view: %lld elements do not fill the shape",
                           (long long)numel);
    return 0;
}

struct tensor *tensor_view(struct tensor *x, int ndim, const int64_t *shape)
{
    int64_t inferred[TENSOR_MAX_DIMS];
    if (!x)
        return NULL;
    if (ndim < 0 || ndim > TENSOR_MAX_DIMS)
        return raise_null(ValueError, "tensor_view: a view has 0 to %d dimensions, not %d",
                          TENSOR_MAX_DIMS, ndim);
    if (!tensor_is_contiguous(x))
        return raise_null(ValueError,
                          "tensor_view needs contiguous memory: use tensor_contiguous first");
    if (shape_infer(ndim, shape, x->numel, inferred) < 0)
        return NULL;
    struct tensor *view = view_of(x);
    if (view && tensor_set_shape(view, ndim, inferred) < 0)
        return NULL;
    return autograd_record(view, &(struct record){"tensor_view", view_backward, INPUTS(x)});
}

/* ---- transpose ---- */

static int transpose_backward(struct backward *run)
{
    const int64_t *dims = run->node->integers;
    return backward_send(run, 0, tensor_transpose(run->gradient, (int)dims[0], (int)dims[1]));
}

static int64_t dim_check(const struct tensor *x, int dim)
{
    int counted = dim < 0 ? dim + x->ndim : dim;
    if (counted < 0 || counted >= x->ndim)
        return raise_error(ValueError, "there is no dimension %d in shape %s", dim,
                           tensor_shape_name(x));
    return counted;
}

static void swap(int64_t *values, int64_t i, int64_t j)
{
    int64_t value = values[i];
    values[i] = values[j];
    values[j] = value;
}

struct tensor *tensor_transpose(struct tensor *x, int dim0, int dim1)
{
    if (!x)
        return NULL;
    int64_t d0 = dim_check(x, dim0), d1 = dim_check(x, dim1);
    struct tensor *view = d0 < 0 || d1 < 0 ? NULL : view_of(x);
    if (!view)
        return NULL;
    swap(view->shape, d0, d1);
    swap(view->strides, d0, d1);
    return autograd_record(view, &(struct record){"tensor_transpose", transpose_backward, INPUTS(x),
                                                  .integers = {d0, d1}});
}

struct tensor *op_transposed(const struct tensor *x)
{
    struct tensor *view = x ? tensor_own(tensor_alias(x)) : NULL;
    if (view) {
        swap(view->shape, 0, 1);
        swap(view->strides, 0, 1);
    }
    return view;
}

/* ---- slice ---- */

struct tensor *op_slice(const struct tensor *x, int64_t dim, int64_t start, int64_t length)
{
    struct tensor *view = tensor_own(tensor_alias(x));
    if (!view)
        return NULL;
    view->data += start * x->strides[dim] * dtype_size(x->dtype);
    view->numel = x->shape[dim] ? x->numel / x->shape[dim] * length : 0;
    view->shape[dim] = length;
    return view;
}

static int slice_backward(struct backward *run)
{
    const int64_t *place = run->node->integers;
    return backward_send_part(run, 0, run->gradient, (int)place[0], place[1]);
}

struct tensor *tensor_slice(struct tensor *x, int dim, int64_t start, int64_t length)
{
    if (!x)
        return NULL;
    int64_t d = dim_check(x, dim);
    if (d < 0)
        return NULL;
    if (start < 0 || length < 0 || start > x->shape[d] || length > x->shape[d] - start)
        return raise_null(ValueError,
                          "a slice of %lld from %lld does not lie in dimension %lld of %s",
                          (long long)length, (long long)start, (long long)d, tensor_shape_name(x));
    struct tensor *view = op_slice(x, d, start, length);
    if (view)
        atomic_store(&x->storage->viewed, true);
    return autograd_record(
        view, &(struct record){"tensor_slice", slice_backward, INPUTS(x), .integers = {d, start}});
}

struct tensors *tensor_split(struct tensor *x, int64_t rows)
{
    if (!x)
        return NULL;
    if (x->ndim == 0)
        return raise_null(ValueError, "tensor_split of a scalar");
    if (rows < 1)
        return raise_null(ValueError, "tensor_split: rows must be at least 1, got %lld",
                          (long long)rows);
    int64_t total = x->shape[0], pieces = total ? (total - 1) / rows + 1 : 1;
    if (pieces > INT32_MAX)
        return raise_null(ValueError, "tensor_split: %lld pieces are too many", (long long)pieces);
    struct tensors *list = tensors_new((int)pieces);
    for (int i = 0; list && i < list->n; i++) {
        int64_t start = i * rows, left = total - start;
        list->at[i] = tensor_slice(x, 0, start, left < rows ? left : rows);
        if (!list->at[i])
            return NULL;
    }
    return list;
}

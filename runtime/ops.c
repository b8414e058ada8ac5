#include "runtime/ops.h"

#include "runtime/ops_internal.h"

int op_check(const char *name, int n, struct tensor *const *operands)
{
    for (int i = 0; i < n; i++) {
        if (!operands[i])
            return -1;
        if (operands[i]->dtype == FLOAT16)
            return raise_error(TypeError, "%s does not compute in float16: use tensor_cast", name);
        if (operands[i]->dtype != operands[0]->dtype)
            return raise_error(TypeError, "%s of %s and %s: cast one to the other's dtype", name,
                               dtype_name(operands[0]->dtype), dtype_name(operands[i]->dtype));
        if (!device_equal(tensor_device(operands[0]), tensor_device(operands[i])))
            return raise_error(RuntimeError, "%s of tensors on %s and %s: move one with tensor_to",
                               name, device_name(tensor_device(operands[0])),
                               device_name(tensor_device(operands[i])));
    }
    return 0;
}

int op_check_same_shape(const char *name, const struct tensor *a, const struct tensor *b)
{
    if (tensor_same_shape(a, b))
        return 0;
    return raise_error(ValueError, "%s needs equal shapes, not %s and %s", name,
                       tensor_shape_name(a), tensor_shape_name(b));
}

struct tensor *op_unary(enum unary op, const struct tensor *x, double k)
{
    struct tensor *out = tensor_empty_like(x);
    return out && tensor_table(out)->unary(op, out, x, k) == 0 ? out : NULL;
}

struct tensor *op_binary(enum binary op, const struct tensor *a, const struct tensor *b, double k)
{
    struct tensor *out = a && b ? tensor_empty_like(a) : NULL;
    return out && tensor_table(out)->binary(op, out, a, b, k) == 0 ? out : NULL;
}

struct tensor *op_expand(const struct tensor *x, int ndim, const int64_t *shape)
{
    struct tensor *view = x ? tensor_own(tensor_alias(x)) : NULL;
    if (!view)
        return NULL;
    int added = ndim - x->ndim;
    if (tensor_set_shape(view, ndim, shape) < 0)
        return NULL;
    for (int d = 0; d < ndim; d++) {
        bool repeated = d < added || (x->shape[d - added] == 1 && shape[d] != 1);
        view->strides[d] = repeated ? 0 : x->strides[d - added];
    }
    return view;
}

struct tensor *op_reshape(const struct tensor *x, int ndim, const int64_t *shape)
{
    struct tensor *view = x ? tensor_own(tensor_alias(x)) : NULL;
    return view && tensor_set_shape(view, ndim, shape) == 0 ? view : NULL;
}

struct tensor *op_sum_to(struct tensor *x, int ndim, const int64_t *shape)
{
    if (!x)
        return NULL;
    int64_t aligned[TENSOR_MAX_DIMS]; /* `shape` with as many dimensions as x has */
    for (int d = 0; d < x->ndim; d++)
        aligned[d] = d < x->ndim - ndim ? 1 : shape[d - (x->ndim - ndim)];
    struct tensor *sum = tensor_empty(ndim, shape, x->dtype, tensor_device(x));
    struct tensor *out = sum ? tensor_own(tensor_alias(sum)) : NULL;
    if (!out || tensor_set_shape(out, x->ndim, aligned) < 0)
        return NULL;
    return tensor_table(x)->sum(out, x, 1) == 0 ? sum : NULL;
}

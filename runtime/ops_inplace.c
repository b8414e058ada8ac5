/* ops_inplace.c - operations that overwrite their first operand. With grad mode on they are
 * recorded like any other; then x's history is what it was, with the change on top. */
#include "runtime/ops.h"
#include "runtime/ops_internal.h"

static int unary_in_place(enum unary op, struct tensor *x, double k)
{
    if (!x || autograd_allow_in_place(x, NULL) < 0 || tensor_table(x)->unary(op, x, x, k) < 0)
        return -1;
    tensor_modified(x);
    return 0;
}

static int scale_backward(struct backward *run)
{
    return backward_send(run, 0, op_unary(UNARY_SCALE, run->gradient, run->node->number));
}

struct tensor *tensor_mul_(struct tensor *x, double factor)
{
    if (unary_in_place(UNARY_SCALE, x, factor) < 0)
        return NULL;
    return autograd_record(
        x, &(struct record){"tensor_mul_", scale_backward, INPUTS(x), .number = factor});
}

struct tensor *tensor_div_(struct tensor *x, double divisor)
{
    if (unary_in_place(UNARY_DIVIDE, x, divisor) < 0)
        return NULL;
    return autograd_record(
        x, &(struct record){"tensor_div_", scale_backward, INPUTS(x), .number = 1 / divisor});
}

/* What was overwritten has no influence any more; what replaced it, if it was a tensor, has all. */
static int overwritten_backward(struct backward *run)
{
    const struct tensor *gradient = run->gradient;
    if (backward_wants(run, 0) &&
        backward_send(run, 0,
                      tensor_zeros(gradient->ndim, gradient->shape, gradient->dtype,
                                   tensor_device(gradient))) < 0)
        return -1;
    if (run->node->inputs < 2 || !backward_wants(run, 1))
        return 0;
    return backward_send(run, 1, tensor_cast(run->gradient, (enum dtype)run->node->integers[0]));
}

struct tensor *tensor_fill_(struct tensor *x, double value)
{
    if (!x || autograd_allow_in_place(x, NULL) < 0 || tensor_table(x)->fill(x, value) < 0)
        return NULL;
    tensor_modified(x);
    return autograd_record(x, &(struct record){"tensor_fill_", overwritten_backward, INPUTS(x)});
}

struct tensor *tensor_zero_(struct tensor *x)
{
    return tensor_fill_(x, 0);
}

static int add_backward(struct backward *run)
{
    if (backward_send(run, 0, run->gradient) < 0)
        return -1;
    return backward_wants(run, 1)
               ? backward_send(run, 1, op_unary(UNARY_SCALE, run->gradient, run->node->number))
               : 0;
}

struct tensor *tensor_add_(struct tensor *x, const struct tensor *y, double alpha)
{
    if (!x || !y || op_check_same_shape("tensor_add_", x, y) < 0)
        return NULL;
    if (x->dtype != y->dtype)
        return raise_null(TypeError, "tensor_add_ of %s to %s", dtype_name(y->dtype),
                          dtype_name(x->dtype));
    if (!device_equal(tensor_device(x), tensor_device(y)))
        return raise_null(RuntimeError, "tensor_add_ of tensors on %s and %s",
                          device_name(tensor_device(x)), device_name(tensor_device(y)));
    if (autograd_allow_in_place(x, y) < 0 ||
        tensor_table(x)->binary(BINARY_ADD, x, x, y, alpha) < 0)
        return NULL;
    tensor_modified(x);
    return autograd_record(x, &(struct record){"tensor_add_", add_backward,
                                               INPUTS(x, (struct tensor *)y), .number = alpha});
}

/* ---- copy ---- */

struct tensor *tensor_copy_(struct tensor *x, const struct tensor *source)
{
    if (!x || !source || op_check_same_shape("tensor_copy_", x, source) < 0 ||
        autograd_allow_in_place(x, source) < 0)
        return NULL;
    struct tensor *here = tensor_to((struct tensor *)source, tensor_device(x));
    if (!here || tensor_table(x)->copy(x, here) < 0)
        return NULL;
    tensor_modified(x);
    return autograd_record(x, &(struct record){"tensor_copy_", overwritten_backward,
                                               INPUTS(x, here), .integers = {here->dtype}});
}

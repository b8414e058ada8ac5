/* ops_reduce.c - sums over elements, and the loss made of one. */
#include "runtime/ops.h"
#include "runtime/ops_internal.h"

/* k * the sum over everything that is not in the shape given */
static struct tensor *reduce(const char *name, struct tensor *x, double k)
{
    if (OP_CHECK(name, x) < 0)
        return NULL;
    int64_t ones[TENSOR_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct tensor *sum = tensor_empty(0, NULL, x->dtype, tensor_device(x));
    struct tensor *out = op_expand(sum, x->ndim, ones);
    return out && tensor_table(x)->sum(out, x, k) == 0 ? sum : NULL;
}

static int reduce_backward(struct backward *run)
{
    const struct edge *x = &run->node->edges[0];
    double k = run->node->number;
    struct tensor *each = k == 1 ? run->gradient : tensor_scale(run->gradient, k);
    return backward_send(run, 0, op_expand(each, x->ndim, x->shape));
}

static struct tensor *reduce_recorded(const char *name, struct tensor *x, double k)
{
    return autograd_record(reduce(name, x, k),
                           &(struct record){name, reduce_backward, INPUTS(x), .number = k});
}

struct tensor *tensor_sum(struct tensor *x)
{
    return reduce_recorded("tensor_sum", x, 1);
}

struct tensor *tensor_mean(struct tensor *x)
{
    return x ? reduce_recorded("tensor_mean", x, 1 / (double)x->numel) : NULL;
}

struct tensor *tensor_sum_rows(struct tensor *x)
{
    if (OP_CHECK("tensor_sum_rows", x) < 0)
        return NULL;
    if (x->ndim < 1)
        return raise_null(ValueError, "tensor_sum_rows of a scalar");
    return autograd_record(
        op_sum_to(x, x->ndim - 1, x->shape + 1),
        &(struct record){"tensor_sum_rows", reduce_backward, INPUTS(x), .number = 1});
}

/* ---- mean squared error ---- */

static int mse_backward(struct backward *run)
{
    struct tensor *output = backward_saved(run, 0), *target = backward_saved(run, 1);
    if (!output || !target)
        return -1;
    struct tensor *gradient = tensor_empty_like(output);
    if (!gradient ||
        tensor_table(gradient)->mse_grad(gradient, run->gradient, output, target) < 0 ||
        backward_send(run, 0, gradient) < 0)
        return -1;
    return backward_wants(run, 1) ? backward_send(run, 1, tensor_scale(gradient, -1)) : 0;
}

struct tensor *mse_loss(struct tensor *output, struct tensor *target)
{
    if (OP_CHECK("mse_loss", output, target) < 0 ||
        op_check_same_shape("mse_loss", output, target) < 0)
        return NULL;
    struct tensor *a = tensor_contiguous(output), *b = tensor_contiguous(target);
    struct tensor *loss = tensor_empty(0, NULL, output->dtype, tensor_device(output));
    if (!a || !b || !loss || tensor_table(loss)->mse(loss, a, b) < 0)
        return NULL;
    return autograd_record(
        loss, &(struct record){"mse_loss", mse_backward, INPUTS(a, b), .saved = {a, b}});
}

/* ops_elementwise.c - functions of each element; those of two tensors broadcast. */
#include "runtime/ops.h"
#include "runtime/ops_internal.h"

/* ---- two tensors ---- */

static int broadcast_shape(const char *name, const struct tensor *a, const struct tensor *b,
                           int64_t *shape)
{
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = ndim - 1; d >= 0; d--) {
        int da = d - (ndim - a->ndim), db = d - (ndim - b->ndim);
        int64_t size_a = da < 0 ? 1 : a->shape[da], size_b = db < 0 ? 1 : b->shape[db];
        if (size_a != size_b && size_a != 1 && size_b != 1)
            return raise_error(ValueError, "%s: shapes %s and %s do not broadcast", name,
                               tensor_shape_name(a), tensor_shape_name(b));
        shape[d] = size_a == 1 ? size_b : size_a;
    }
    return ndim;
}

/* Operands of different shapes are expanded; no error if the shapes are equal. */
static struct tensor *broadcast(const char *name, enum binary op, struct tensor *a,
                                struct tensor *b, double k)
{
    if (OP_CHECK(name, a, b) < 0)
        return NULL;
    if (tensor_same_shape(a, b))
        return op_binary(op, a, b, k);
    int64_t shape[TENSOR_MAX_DIMS];
    int ndim = broadcast_shape(name, a, b, shape);
    return ndim < 0 ? NULL : op_binary(op, op_expand(a, ndim, shape), op_expand(b, ndim, shape), k);
}

/* Send input i the gradient, summed over what was broadcast. */
static int send_summed(struct backward *run, int i, struct tensor *gradient)
{
    const struct edge *edge = &run->node->edges[i];
    if (!gradient)
        return -1;
    bool same = gradient->ndim == edge->ndim;
    for (int d = 0; same && d < edge->ndim; d++)
        same = gradient->shape[d] == edge->shape[d];
    return backward_send(run, i, same ? gradient : op_sum_to(gradient, edge->ndim, edge->shape));
}

static int add_backward(struct backward *run)
{
    if (backward_wants(run, 0) && send_summed(run, 0, run->gradient) < 0)
        return -1;
    if (!backward_wants(run, 1))
        return 0;
    double k = run->node->number;
    return send_summed(run, 1, k == 1 ? run->gradient : tensor_scale(run->gradient, k));
}

static struct tensor *add_scaled(const char *name, struct tensor *a, struct tensor *b, double k)
{
    return autograd_record(broadcast(name, BINARY_ADD, a, b, k),
                           &(struct record){name, add_backward, INPUTS(a, b), .number = k});
}

struct tensor *tensor_add(struct tensor *a, struct tensor *b)
{
    return add_scaled("tensor_add", a, b, 1);
}

struct tensor *tensor_sub(struct tensor *a, struct tensor *b)
{
    return add_scaled("tensor_sub", a, b, -1);
}

/* The factor that input i was multiplied by is saved in place i. */
static int mul_backward(struct backward *run)
{
    for (int i = 0; i < 2; i++)
        if (backward_wants(run, i) &&
            send_summed(run, i, tensor_mul(run->gradient, backward_saved(run, i))) < 0)
            return -1;
    return 0;
}

struct tensor *tensor_mul(struct tensor *a, struct tensor *b)
{
    return autograd_record(
        broadcast("tensor_mul", BINARY_MUL, a, b, 0),
        &(struct record){"tensor_mul", mul_backward, INPUTS(a, b),
                         .saved = {autograd_wants(a) ? b : NULL, autograd_wants(b) ? a : NULL}});
}

/* d(a/b) = da / b - (a / b) / b db */
static int div_backward(struct backward *run)
{
    struct tensor *b = backward_saved(run, 0);
    struct tensor *over_b = tensor_div(run->gradient, b);
    if (backward_wants(run, 0) && send_summed(run, 0, over_b) < 0)
        return -1;
    if (!backward_wants(run, 1))
        return 0;
    struct tensor *ratio = tensor_div(backward_saved(run, 1), b);
    return send_summed(run, 1, tensor_scale(tensor_mul(over_b, ratio), -1));
}

struct tensor *tensor_div(struct tensor *a, struct tensor *b)
{
    return autograd_record(broadcast("tensor_div", BINARY_DIV, a, b, 0),
                           &(struct record){"tensor_div", div_backward, INPUTS(a, b),
                                            .saved = {b, autograd_wants(b) ? a : NULL}});
}

/* ---- one tensor and a number ---- */

static struct tensor *map(const char *name, enum unary op, struct tensor *x, double k)
{
    return OP_CHECK(name, x) < 0 ? NULL : op_unary(op, x, k);
}

static int scale_backward(struct backward *run)
{
    return backward_send(run, 0, tensor_scale(run->gradient, run->node->number));
}

struct tensor *tensor_scale(struct tensor *x, double factor)
{
    return autograd_record(
        map("tensor_scale", UNARY_SCALE, x, factor),
        &(struct record){"tensor_scale", scale_backward, INPUTS(x), .number = factor});
}

static int shift_backward(struct backward *run)
{
    return backward_send(run, 0, run->gradient);
}

struct tensor *tensor_add_number(struct tensor *x, double number)
{
    return autograd_record(map("tensor_add_number", UNARY_SHIFT, x, number),
                           &(struct record){"tensor_add_number", shift_backward, INPUTS(x)});
}

/* ---- functions ----
 * Each has a kernel for k * gradient * f'(what was saved), named by the node's integer. */

static int function_backward(struct backward *run)
{
    enum binary kernel = (enum binary)run->node->integers[0];
    struct tensor *saved = backward_saved(run, 0);
    return saved ? backward_send(run, 0, op_binary(kernel, run->gradient, saved, 1)) : -1;
}

/* saves_result: f' is computed from f(x) rather than from x */
static struct tensor *function(const char *name, enum unary op, enum binary gradient,
                               bool saves_result, struct tensor *x)
{
    struct tensor *out = map(name, op, x, 0);
    return autograd_record(out, &(struct record){name, function_backward, INPUTS(x),
                                                 .saved = {saves_result ? out : x},
                                                 .integers = {gradient}});
}

struct tensor *tensor_square(struct tensor *x)
{
    return function("tensor_square", UNARY_SQUARE, BINARY_SQUARE_GRAD, false, x);
}

struct tensor *tensor_tanh(struct tensor *x)
{
    return function("tensor_tanh", UNARY_TANH, BINARY_TANH_GRAD, true, x);
}

struct tensor *tensor_relu(struct tensor *x)
{
    return function("tensor_relu", UNARY_RELU, BINARY_RELU_GRAD, true, x);
}

struct tensor *tensor_gelu(struct tensor *x)
{
    return function("tensor_gelu", UNARY_GELU, BINARY_GELU_GRAD, false, x);
}

/* ---- the residual block's second half ---- */

static int gelu_residual_backward(struct backward *run)
{
    if (backward_send(run, 0, run->gradient) < 0)
        return -1;
    if (!backward_wants(run, 1))
        return 0;
    struct tensor *z = backward_saved(run, 0);
    return z ? backward_send(run, 1,
                             op_binary(BINARY_GELU_GRAD, run->gradient, z, run->node->number))
             : -1;
}

struct tensor *tensor_gelu_residual(struct tensor *x, struct tensor *z, double scale)
{
    if (OP_CHECK("tensor_gelu_residual", x, z) < 0 ||
        op_check_same_shape("tensor_gelu_residual", x, z) < 0)
        return NULL;
    return autograd_record(op_binary(BINARY_GELU_RESIDUAL, x, z, scale),
                           &(struct record){"tensor_gelu_residual", gelu_residual_backward,
                                            INPUTS(x, z), .saved = {autograd_wants(z) ? z : NULL},
                                            .number = scale});
}

/* ops_linear.c - matrix products. A transposed operand is a view; gemm takes either order. */
#include <limits.h>
#include <string.h>

#include "runtime/ops.h"
#include "runtime/ops_internal.h"

/* A matrix that gemm takes: x itself, or a contiguous copy. */
static struct tensor *matrix_of(struct tensor *x)
{
    if (!x || tensor_is_row_major(x) || tensor_is_row_major(op_transposed(x)))
        return x;
    return tensor_clone(x);
}

/* The device's product, of matrices that have elements and whose sizes BLAS can count, in ints. */
static int gemm(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta)
{
    const struct device_table *table = tensor_table(out);
    const int64_t n = out->shape[0], m = out->shape[1], k = a->shape[1];
    if (n > INT_MAX || m > INT_MAX || k > INT_MAX || tensor_layout(a).leading > INT_MAX ||
        tensor_layout(b).leading > INT_MAX)
        return raise_error(ValueError, "a product of matrices of more than %d rows or columns",
                           INT_MAX);
    if (n == 0 || m == 0)
        return 0;
    if (k == 0)
        return beta == 0 ? table->fill(out, 0) : table->unary(UNARY_SCALE, out, out, beta);
    return table->gemm(out, a, b, beta);
}

/* out = a b + beta out, where out is contiguous */
static struct tensor *multiply_into(struct tensor *out, struct tensor *a, struct tensor *b,
                                    double beta)
{
    NO_GRAD;
    a = matrix_of(a);
    b = matrix_of(b);
    return out && a && b && gemm(out, a, b, beta) == 0 ? out : NULL;
}

static struct tensor *multiply(struct tensor *a, struct tensor *b)
{
    if (!a || !b)
        return NULL;
    struct tensor *out = tensor_empty(SHAPE(a->shape[0], b->shape[1]), a->dtype, tensor_device(a));
    return multiply_into(out, a, b, 0);
}

/* ---- matmul ---- */

/* Saved in place i: the other factor than input i. */
static int matmul_backward(struct backward *run)
{
    struct tensor *gradient = run->gradient;
    if (backward_wants(run, 0) &&
        backward_send(run, 0, multiply(gradient, op_transposed(backward_saved(run, 0)))) < 0)
        return -1;
    if (backward_wants(run, 1) &&
        backward_send(run, 1, multiply(op_transposed(backward_saved(run, 1)), gradient)) < 0)
        return -1;
    return 0;
}

struct tensor *tensor_matmul(struct tensor *a, struct tensor *b)
{
    if (OP_CHECK("tensor_matmul", a, b) < 0)
        return NULL;
    if (a->ndim != 2 || b->ndim != 2 || a->shape[1] != b->shape[0])
        return raise_null(ValueError, "tensor_matmul of shapes %s and %s, not (N, K) and (K, M)",
                          tensor_shape_name(a), tensor_shape_name(b));
    return autograd_record(
        multiply(a, b),
        &(struct record){"tensor_matmul", matmul_backward, INPUTS(a, b),
                         .saved = {autograd_wants(a) ? b : NULL, autograd_wants(b) ? a : NULL}});
}

/* ---- linear ---- */

enum linear_input { LINEAR_X, LINEAR_WEIGHT, LINEAR_BIAS };

/* x (..., in) as a matrix (rows, in), without history */
static struct tensor *rows_of(struct tensor *x)
{
    NO_GRAD;
    if (!x || x->ndim == 2)
        return matrix_of(x);
    int64_t rows = 1;
    for (int d = 0; d < x->ndim - 1; d++)
        rows *= x->shape[d];
    return op_reshape(tensor_contiguous(x), SHAPE(rows, x->shape[x->ndim - 1]));
}

/* dx (rows, in) = gradient (rows, out) W (out, in), added to what x's gradient is so far: gemm does
 * that for nothing. */
static int linear_backward(struct backward *run)
{
    if (!backward_wants(run, LINEAR_X))
        return 0;
    const struct edge *x = &run->node->edges[LINEAR_X];
    struct tensor *gradient = rows_of(run->gradient), *partial = backward_partial(run, LINEAR_X);
    struct tensor *weight = gradient ? backward_saved(run, LINEAR_WEIGHT) : NULL;
    if (!weight)
        return -1;
    if (partial)
        return multiply_into(rows_of(partial), gradient, weight, 1) ? 0 : -1;
    return backward_send(run, LINEAR_X,
                         x->ndim == 2 ? multiply(gradient, weight)
                                      : op_reshape(multiply(gradient, weight), x->ndim, x->shape));
}

static int linear_backward_parameters(struct backward *run)
{
    struct tensor *gradient = rows_of(run->gradient);
    if (!gradient)
        return -1;
    if (backward_wants(run, LINEAR_BIAS) &&
        backward_send(run, LINEAR_BIAS, tensor_sum_rows(gradient)) < 0)
        return -1;
    if (!backward_wants(run, LINEAR_WEIGHT))
        return 0;
    return backward_send(run, LINEAR_WEIGHT,
                         multiply(op_transposed(gradient), rows_of(backward_saved(run, LINEAR_X))));
}

static int linear_check(const struct tensor *x, const struct tensor *weight,
                        const struct tensor *bias)
{
    if (x->ndim < 1 || weight->ndim != 2 || x->shape[x->ndim - 1] != weight->shape[1])
        return raise_error(ValueError,
                           "tensor_linear of x %s and weight %s, not (..., in) and (out, in)",
                           tensor_shape_name(x), tensor_shape_name(weight));
    if (bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
        return raise_error(ValueError, "tensor_linear with bias %s for weight %s, not (out)",
                           tensor_shape_name(bias), tensor_shape_name(weight));
    return 0;
}

/* The bias goes in first and the product on top of it, which saves gemm clearing its result. */
static struct tensor *linear_forward(struct tensor *x, struct tensor *weight, struct tensor *bias)
{
    int64_t shape[TENSOR_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = weight->shape[0];
    struct tensor *out = tensor_empty(x->ndim, shape, x->dtype, tensor_device(x));
    if (!out)
        return NULL;
    if (bias) {
        struct tensor *repeated = op_expand(bias, out->ndim, out->shape);
        if (!repeated || tensor_table(out)->copy(out, repeated) < 0)
            return NULL;
    }
    struct tensor *done =
        multiply_into(rows_of(out), rows_of(x), op_transposed(weight), bias ? 1 : 0);
    return done ? out : NULL;
}

struct tensor *tensor_linear(struct tensor *x, struct tensor *weight, struct tensor *bias)
{
    if (OP_CHECK("tensor_linear", x, weight, bias ? bias : weight) < 0 ||
        linear_check(x, weight, bias) < 0)
        return NULL;
    return autograd_record(linear_forward(x, weight, bias),
                           &(struct record){"tensor_linear", linear_backward,
                                            linear_backward_parameters, INPUTS(x, weight, bias),
                                            .saved = {autograd_wants(weight) ? x : NULL,
                                                      autograd_wants(x) ? weight : NULL}});
}

#ifndef RUNTIME_OPS_H
#define RUNTIME_OPS_H
/* ops.h - differentiable operations. Each returns a new tensor, borrowed from the current scope; a
 * NULL operand passes through. Operands are of one dtype and on one device, FLOAT32 or FLOAT64
 * (tensor_to, tensor_cast, split, cat and views also take FLOAT16). Shapes broadcast as in PyTorch
 * where noted. errors: ValueError shape, TypeError dtype, RuntimeError device, MemoryError. */
#include "runtime/tensor.h"

/* tensor_to - x on `device`: x itself if it is there already, else a copy. source: torch.Tensor.to
 * tensor_cast - x as `dtype`: x itself if it has it already */
struct tensor *tensor_to(struct tensor *x, struct device device);
struct tensor *tensor_cast(struct tensor *x, enum dtype dtype);

/* Views: the same memory with another shape. A dim below 0 counts from the last.
 * tensor_view - the elements of a contiguous x in row-major order; one size may be -1
 * tensor_transpose - two dimensions swapped
 * tensor_slice - elements start .. start+length-1 along dim
 * errors: ValueError too for an x that is not contiguous, or a dim or elements that it has not
 * source: torch.Tensor.view, transpose, narrow */
struct tensor *tensor_view(struct tensor *x, int ndim, const int64_t *shape);
struct tensor *tensor_transpose(struct tensor *x, int dim0, int dim1);
struct tensor *tensor_slice(struct tensor *x, int dim, int64_t start, int64_t length);

/* tensor_split - cut x along dim 0 into views of `rows` rows; the last may have fewer
 * shapes: x (N, ...) -> ceil(N / rows) tensors (<= rows, ...); N == 0 gives one empty piece
 * errors: NULL, with ValueError if rows < 1 or x is a scalar. source: torch.split */
struct tensors *tensor_split(struct tensor *x, int64_t rows);

/* tensor_cat - join along dim 0, in order
 * shapes: (N0, ...), (N1, ...), ... -> (N0 + N1 + ..., ...)
 * errors: ValueError for an empty list or unequal shapes; a NULL among them passes through
 * source: torch.cat */
struct tensor *tensor_cat(const struct tensors *pieces);

/* Elementwise; add, sub, mul and div broadcast. tensor_gelu is the exact form,
 * x/2 (1 + erf(x / sqrt 2)).
 * source: torch.add, sub, mul, div; mul and add of a number; square, tanh, relu,
 *         torch.nn.functional.gelu */
struct tensor *tensor_add(struct tensor *a, struct tensor *b);
struct tensor *tensor_sub(struct tensor *a, struct tensor *b);
struct tensor *tensor_mul(struct tensor *a, struct tensor *b);
struct tensor *tensor_div(struct tensor *a, struct tensor *b);
struct tensor *tensor_scale(struct tensor *x, double factor);
struct tensor *tensor_add_number(struct tensor *x, double number);
struct tensor *tensor_square(struct tensor *x);
struct tensor *tensor_tanh(struct tensor *x);
struct tensor *tensor_relu(struct tensor *x);
struct tensor *tensor_gelu(struct tensor *x);

/* tensor_matmul - (N, K) (K, M) -> (N, M). source: torch.matmul for matrices */
struct tensor *tensor_matmul(struct tensor *a, struct tensor *b);

/* tensor_linear - x Wᵀ + bias; bias may be NULL for none
 * shapes: x (N, in) or (..., in), weight (out, in), bias (out) -> (N, out) or (..., out)
 * source: torch.nn.functional.linear. Unlike other operands, a NULL bias does not pass through. */
struct tensor *tensor_linear(struct tensor *x, struct tensor *weight, struct tensor *bias);

/* tensor_gelu_residual - x + scale * gelu(z), in one pass. shapes: x, z equal */
struct tensor *tensor_gelu_residual(struct tensor *x, struct tensor *z, double scale);

/* Reductions over all elements to a scalar () and, for tensor_sum_rows, over dim 0:
 * (N, ...) -> (...). source: torch.sum, mean. The mean of no elements is NAN. */
struct tensor *tensor_sum(struct tensor *x);
struct tensor *tensor_mean(struct tensor *x);
struct tensor *tensor_sum_rows(struct tensor *x);

/* mse_loss - mean((output - target)²) over all elements, a scalar ()
 * shapes: equal. source: torch.nn.functional.mse_loss (which broadcasts; this refuses) */
struct tensor *mse_loss(struct tensor *output, struct tensor *target);

/* loss_fn - what train_step and train_microbatch are given: a scalar from output and target, in
 * that order. mse_loss is one. */
typedef struct tensor *loss_fn(struct tensor *output, struct tensor *target);
#endif

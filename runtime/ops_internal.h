#ifndef RUNTIME_OPS_INTERNAL_H
#define RUNTIME_OPS_INTERNAL_H
/* ops_internal.h - what the operations share. None of these records anything; results are borrowed
 * from the current scope, NULL passes through. */
#include "runtime/autograd_internal.h"
#include "runtime/error.h"
#include "runtime/tensor_internal.h"

/* op_check - operands of one dtype, not FLOAT16, on one device. errors: -1, with TypeError,
 * RuntimeError; a NULL operand passes through */
int op_check(const char *name, int n, struct tensor *const *operands);
#define OP_CHECK(name, ...)                                                                        \
    op_check((name), (int)(sizeof((struct tensor *[]){__VA_ARGS__}) / sizeof(struct tensor *)),    \
             (struct tensor *[]){__VA_ARGS__})

/* op_check_same_shape - errors: -1, with ValueError naming both */
int op_check_same_shape(const char *name, const struct tensor *a, const struct tensor *b);

/* op_unary, op_binary - a new tensor of x's (a's) shape, computed by the device; in op_binary the
 * operands are of one shape, possibly expanded */
struct tensor *op_unary(enum unary op, const struct tensor *x, double k);
struct tensor *op_binary(enum binary op, const struct tensor *a, const struct tensor *b, double k);

/* op_expand - x broadcast to a shape that it fits, strides 0 where repeated */
struct tensor *op_expand(const struct tensor *x, int ndim, const int64_t *shape);

/* op_sum_to - the sum over whatever op_expand would repeat to get from this shape to x's */
struct tensor *op_sum_to(struct tensor *x, int ndim, const int64_t *shape);

/* op_reshape - a contiguous x with another shape of as many elements, a view */
struct tensor *op_reshape(const struct tensor *x, int ndim, const int64_t *shape);

/* op_slice - elements start .. start+length-1 along dim, a view */
struct tensor *op_slice(const struct tensor *x, int64_t dim, int64_t start, int64_t length);

/* op_transposed - a matrix's transpose, a view */
struct tensor *op_transposed(const struct tensor *x);
#endif

#ifndef RUNTIME_TENSOR_H
#define RUNTIME_TENSOR_H
/* tensor.h - n-dimensional arrays: shape, strides, dtype, device.
 *
 * Shapes are written (N, C); sizes are counted in elements. Unless a function says otherwise, the
 * tensor that it returns is borrowed from the current scope (scope.h), a NULL tensor passes through
 * (the result is NULL and nothing new is raised), and errors are ValueError for a shape, TypeError
 * for a dtype, RuntimeError for operands on different devices, MemoryError. A trailing underscore
 * means in place, as in PyTorch. Differentiable operations are in ops.h. */
#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_MAX_DIMS = 8 };

enum dtype { FLOAT32, FLOAT64, FLOAT16 }; /* FLOAT16 is storage: cast it to compute */

/* dtype_name - "float32", ...; dtype_size - bytes of an element */
const char *dtype_name(enum dtype dtype);
int dtype_size(enum dtype dtype);

enum device_kind { DEVICE_CPU, DEVICE_CUDA };

struct device {
    enum device_kind kind;
    int index;
};
#define CPU ((struct device){DEVICE_CPU, 0})
#define CUDA(index) ((struct device){DEVICE_CUDA, (index)})

/* device_equal - the same kind and index. device_name - "cpu", "cuda:1" (owns: borrowed) */
bool device_equal(struct device a, struct device b);
const char *device_name(struct device device);

struct tensor;

/* tensors - a list, as tensor_split returns it; the array is borrowed from the scope too */
struct tensors {
    int n;
    struct tensor **at;
};

/* tensors_new - a list of n NULL tensors. errors: ValueError if n < 0 */
struct tensors *tensors_new(int n);

/* SHAPE - the two arguments `ndim, shape` of the functions below: tensor_zeros(SHAPE(8, 4), ...) */
#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* tensor_empty, tensor_zeros, tensor_full - a new tensor, contiguous, without requires_grad.
 * ndim 0 is a scalar; a size of 0 is allowed. source: torch.empty, zeros, full */
struct tensor *tensor_empty(int ndim, const int64_t *shape, enum dtype dtype, struct device device);
struct tensor *tensor_zeros(int ndim, const int64_t *shape, enum dtype dtype, struct device device);
struct tensor *tensor_full(int ndim, const int64_t *shape, double value, enum dtype dtype,
                           struct device device);

/* tensor_from, tensor_from_doubles - a CPU tensor, FLOAT32 or FLOAT64, with a copy of
 * values[0..numel-1] in row-major order. source: torch.tensor */
struct tensor *tensor_from(const float *values, int ndim, const int64_t *shape);
struct tensor *tensor_from_doubles(const double *values, int ndim, const int64_t *shape);

/* What a tensor is. tensor_size(x, -1) is the last dimension; a dim that x has not is not caught.
 * None of these accepts NULL. source: torch.Tensor.dim, size, shape, stride, numel, dtype, device,
 * is_contiguous */
int tensor_ndim(const struct tensor *x);
int64_t tensor_size(const struct tensor *x, int dim);
const int64_t *tensor_shape(const struct tensor *x);
const int64_t *tensor_strides(const struct tensor *x);
int64_t tensor_numel(const struct tensor *x);
enum dtype tensor_dtype(const struct tensor *x);
struct device tensor_device(const struct tensor *x);
bool tensor_is_contiguous(const struct tensor *x);
bool tensor_same_shape(const struct tensor *a, const struct tensor *b);

/* tensor_shape_name - "(8, 4)". owns: borrowed from the scope */
const char *tensor_shape_name(const struct tensor *x);

/* tensor_data - the first element. A CPU tensor's memory can be read and written; a CUDA tensor's
 * address means something on its device only: copy it with tensor_to(x, CPU) first.
 * owns: borrowed, as long as x lives. source: torch.Tensor.data_ptr */
void *tensor_data(const struct tensor *x);

/* tensor_item - the value of a one-element tensor, from any device and dtype
 * errors: NAN, with ValueError if there is not exactly one element. source: torch.Tensor.item */
double tensor_item(const struct tensor *x);

/* tensor_get - element at a position, one index per dimension, from any device: tensor_get(x, 2, 3)
 * errors: NAN, with ValueError for a wrong number of indices or one out of range */
double tensor_get_at(const struct tensor *x, int count, const int64_t *position);
#define tensor_get(x, ...) tensor_get_at((x), SHAPE(__VA_ARGS__))

/* tensor_read - all elements as doubles, in row-major order, into out[0..numel-1]
 * errors: -1 */
int tensor_read(const struct tensor *x, double *out);

/* tensor_clone - a contiguous copy in new memory, on the same device; differentiable
 * tensor_contiguous - x itself if it is contiguous, else such a copy; differentiable
 * source: torch.Tensor.clone, contiguous */
struct tensor *tensor_clone(struct tensor *x);
struct tensor *tensor_contiguous(struct tensor *x);

/* In place. Each returns x, so that calls nest. All are refused with RuntimeError, as in PyTorch,
 * on a leaf that requires grad while grad mode is on: wrap them in NO_GRAD (autograd.h).
 *   tensor_copy_  x = source, cast and moved as needed; shapes must be equal
 *   tensor_add_   x += alpha * y, shapes equal
 *   tensor_mul_, tensor_div_, tensor_fill_, tensor_zero_   with a number
 * They take all dtypes and are differentiated like other operations, except that a change which
 * needs a gradient is refused with RuntimeError where x is, or has, a view: join pieces with
 * tensor_cat. */
struct tensor *tensor_copy_(struct tensor *x, const struct tensor *source);
struct tensor *tensor_add_(struct tensor *x, const struct tensor *y, double alpha);
struct tensor *tensor_mul_(struct tensor *x, double factor);
struct tensor *tensor_div_(struct tensor *x, double divisor);
struct tensor *tensor_fill_(struct tensor *x, double value);
struct tensor *tensor_zero_(struct tensor *x);

/* tensor_retain - hold x beyond the scope; tensor_release - let go again. NULL is allowed.
 * returns: x. Student code needs neither. */
struct tensor *tensor_retain(struct tensor *x);
void tensor_release(struct tensor *x);
#endif

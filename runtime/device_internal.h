#ifndef RUNTIME_DEVICE_INTERNAL_H
#define RUNTIME_DEVICE_INTERNAL_H
/* device_internal.h - what a device can do: one table of operations per kind of device.
 *
 * The operations allocate, check and record; the table's functions compute. They are handed tensors
 * whose shapes have been made to fit, all on one device, with any strides (0 where broadcast)
 * unless it says otherwise; `out` is never broadcast and may be the very same memory as an input.
 * They may return before the work is done, as long as later calls on the device see its results;
 * nobody else dereferences a tensor's memory, except a CPU tensor's. They return -1 with an error
 * pending. */
#include <stddef.h>

#include "runtime/tensor.h"

struct storage;

/* out = f(x, k) */
enum unary {
    UNARY_SCALE,  /* x * k */
    UNARY_DIVIDE, /* x / k */
    UNARY_SHIFT,  /* x + k */
    UNARY_SQUARE,
    UNARY_TANH,
    UNARY_RELU,
    UNARY_GELU,
    UNARY_COUNT
};

/* out = f(a, b, k) */
enum binary {
    BINARY_ADD, /* a + k * b */
    BINARY_MUL,
    BINARY_DIV,
    BINARY_GELU_RESIDUAL, /* a + k * gelu(b) */
    /* gradients: k * a * f'(b), where a is the gradient of the result, b the input or, for tanh and
     * relu, the result */
    BINARY_SQUARE_GRAD,
    BINARY_TANH_GRAD,
    BINARY_RELU_GRAD,
    BINARY_GELU_GRAD,
    BINARY_COUNT
};

struct device_table {
    int (*count)(void); /* devices of this kind; indices 0 .. count-1 */

    /* alloc - at least one byte, aligned to 64. errors: NULL, with MemoryError
     * free - may be called from any thread, while work that uses the memory is still under way */
    void *(*alloc)(int index, size_t bytes);
    void (*free)(int index, void *memory, size_t bytes);

    /* transfer - between two devices of which at least one is of this kind; both contiguous, of one
     * dtype and shape. When it returns, a CPU `out` holds the data and a CPU `x` may change. */
    int (*transfer)(struct tensor *out, const struct tensor *x);

    /* All dtypes. copy casts. FLOAT16 is computed in FLOAT32. */
    int (*copy)(struct tensor *out, const struct tensor *x);
    int (*fill)(struct tensor *out, double value);
    int (*unary)(enum unary op, struct tensor *out, const struct tensor *x, double k);
    int (*binary)(enum binary op, struct tensor *out, const struct tensor *a,
                  const struct tensor *b, double k);

    /* FLOAT32 and FLOAT64 from here on.
     * sum - out = k * x summed over the dimensions in which out has size 1; out is contiguous */
    int (*sum)(struct tensor *out, const struct tensor *x, double k);

    /* gemm - out = a b + beta * out, (N, K) (K, M) -> (N, M), with sizes of 1 to INT_MAX; out
     * contiguous, a and b each row-major, or row-major when transposed (tensor_is_row_major) */
    int (*gemm)(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta);

    /* mse - out () = mean((output - target)²); contiguous
     * mse_grad - out = gradient () * 2 / numel * (output - target); contiguous */
    int (*mse)(struct tensor *out, const struct tensor *output, const struct tensor *target);
    int (*mse_grad)(struct tensor *out, const struct tensor *gradient, const struct tensor *output,
                    const struct tensor *target);

    /* synchronize - wait until everything asked of the device is done */
    int (*synchronize)(int index);

    /* ---- NULL where the device has nothing better than the operations above ---- */

    /* add_many - out[i] += k * x[i] for n pairs on one device; contiguous, of one dtype */
    int (*add_many)(int n, struct tensor *const *out, struct tensor *const *x, double k);

    /* mark - x is complete as soon as what was asked of the device so far is done: who copies it to
     * another device need not wait for what is asked later
     * forget - called before a storage goes whose `ready` is set */
    void (*mark)(struct tensor *x);
    void (*forget)(struct storage *storage);
};

extern const struct device_table cpu_device;

/* device_table_of - the table for a device. errors: NULL, with RuntimeError if there is no such */
const struct device_table *device_table_of(struct device device);

/* device_register - make a kind of device known; before its first use
 * source: torch's PrivateUse1 */
void device_register(enum device_kind kind, const struct device_table *table);
#endif

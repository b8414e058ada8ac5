/* reduce.c - sums, kept in double precision whatever the dtype, in an order that depends on the
 * shape alone. */
#include <stdlib.h>

#include "runtime/cpu/cpu.h"
#include "runtime/error.h"

enum { BLOCK = 512 };

static void store(struct tensor *out, int64_t i, double value)
{
    if (out->dtype == FLOAT64)
        ((double *)out->data)[i] = value;
    else
        ((float *)out->data)[i] = (float)value;
}

/* A row of x is summed into one double, or each element into its own. */
static void sum_row(void *context, const struct loop *loop, int64_t n, char *const *data)
{
    (void)context;
    double *sums = (double *)data[0];
    enum dtype dtype = loop->operand[1].dtype;
    int64_t stride = loop_stride(loop, 1), sums_stride = loop_stride(loop, 0);
    double buffer[BLOCK];
    for (int64_t start = 0; start < n; start += BLOCK) {
        int64_t count = n - start < BLOCK ? n - start : BLOCK;
        const char *x = data[1] + start * stride * dtype_size(dtype);
        if (stride != 1) {
            convert(count, buffer, dtype, 1, x, dtype, stride);
            x = (const char *)buffer;
        }
        if (sums_stride == 0)
            *sums += cpu_kernel_sum(count, x, dtype);
        else
            cpu_kernel_add_to(count, sums + start, x, dtype);
    }
}

int cpu_sum(struct tensor *out, const struct tensor *x, double k)
{
    double *sums = calloc((size_t)out->numel + 1, sizeof *sums);
    if (!sums)
        return raise_error(MemoryError, "out of memory for a sum");
    struct tensor target = *out; /* the sums, seen with x's shape */
    target.dtype = FLOAT64;
    target.data = (char *)sums;
    for (int d = 0; d < x->ndim; d++) {
        target.shape[d] = x->shape[d];
        target.strides[d] = out->shape[d] == 1 ? 0 : out->strides[d];
    }
    struct loop loop = loop_init(2, (const struct tensor *[]){&target, x});
    loop_run(&loop, sum_row, NULL);
    for (int64_t i = 0; i < out->numel; i++)
        store(out, i, k * sums[i]);
    free(sums);
    return 0;
}

int cpu_mse(struct tensor *out, const struct tensor *output, const struct tensor *target)
{
    double sum = cpu_kernel_squares(output->numel, output->data, target->data, output->dtype);
    store(out, 0, sum / (double)output->numel);
    return 0;
}

int cpu_mse_grad(struct tensor *out, const struct tensor *gradient, const struct tensor *output,
                 const struct tensor *target)
{
    double g = out->dtype == FLOAT64 ? *(double *)gradient->data : *(float *)gradient->data;
    double k = 2 * g / (double)out->numel;
    cpu_binary_kernel(BINARY_ADD, out->dtype)(out->numel, out->data, output->data, target->data,
                                              -1);
    cpu_unary_kernel(UNARY_SCALE, out->dtype)(out->numel, out->data, out->data, NULL, k);
    return 0;
}

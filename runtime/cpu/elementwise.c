/* elementwise.c - copies and functions of each element, for any strides and dtype.
 *
 * Kernels see contiguous runs of one computing dtype. Operands that are not such are brought
 * through a small buffer, block by block. */
#include "runtime/cpu/cpu.h"

enum { BLOCK = 512 };

/* ---- copy and fill ---- */

static void copy_row(void *context, const struct loop *loop, int64_t n, char *const *data)
{
    (void)context;
    convert(n, data[0], loop->operand[0].dtype, loop_stride(loop, 0), data[1],
            loop->operand[1].dtype, loop_stride(loop, 1));
}

int cpu_copy(struct tensor *out, const struct tensor *x)
{
    struct loop loop = loop_init(2, (const struct tensor *[]){out, x});
    loop_run(&loop, copy_row, NULL);
    return 0;
}

static void fill_row(void *context, const struct loop *loop, int64_t n, char *const *data)
{
    convert(n, data[0], loop->operand[0].dtype, loop_stride(loop, 0), context, FLOAT64, 0);
}

int cpu_fill(struct tensor *out, double value)
{
    struct loop loop = loop_init(1, (const struct tensor *[]){out});
    loop_run(&loop, fill_row, &value);
    return 0;
}

/* ---- functions ---- */

struct map {
    kernel_fn *kernel;
    enum dtype dtype; /* that the kernel computes in */
    double k;
};

typedef double block_buffer[BLOCK];

static bool is_direct(const struct loop *loop, const struct map *map, int i)
{
    return loop_stride(loop, i) == 1 && loop->operand[i].dtype == map->dtype;
}

/* Elements start .. start+n-1 of operand i's row, where the kernel can read them. */
static const void *block_in(const struct loop *loop, const struct map *map, int i, char *row,
                            int64_t start, int64_t n, void *buffer)
{
    enum dtype dtype = loop->operand[i].dtype;
    int64_t stride = loop_stride(loop, i);
    const char *from = row + start * stride * dtype_size(dtype);
    if (is_direct(loop, map, i))
        return from;
    convert(n, buffer, map->dtype, 1, from, dtype, stride);
    return buffer;
}

static void map_row(void *context, const struct loop *loop, int64_t n, char *const *data)
{
    const struct map *map = context;
    block_buffer buffers[LOOP_OPERANDS];
    bool direct = true;
    for (int i = 0; i < loop->operands; i++)
        direct = direct && is_direct(loop, map, i);
    int64_t step = direct ? n : BLOCK;
    for (int64_t start = 0; start < n; start += step) {
        int64_t count = n - start < step ? n - start : step;
        const void *in[2] = {NULL, NULL};
        for (int i = 1; i < loop->operands; i++)
            in[i - 1] = block_in(loop, map, i, data[i], start, count, buffers[i]);
        enum dtype dtype = loop->operand[0].dtype;
        int64_t stride = loop_stride(loop, 0);
        char *to = data[0] + start * stride * dtype_size(dtype);
        void *out = is_direct(loop, map, 0) ? (void *)to : buffers[0];
        map->kernel(count, out, in[0], in[1], map->k);
        if (out != to)
            convert(count, to, dtype, stride, out, map->dtype, 1);
    }
}

static enum dtype computing(enum dtype dtype)
{
    return dtype == FLOAT64 ? FLOAT64 : FLOAT32;
}

int cpu_unary(enum unary op, struct tensor *out, const struct tensor *x, double k)
{
    enum dtype dtype = computing(out->dtype);
    struct map map = {cpu_unary_kernel(op, dtype), dtype, k};
    struct loop loop = loop_init(2, (const struct tensor *[]){out, x});
    loop_run(&loop, map_row, &map);
    return 0;
}

int cpu_binary(enum binary op, struct tensor *out, const struct tensor *a, const struct tensor *b,
               double k)
{
    enum dtype dtype = computing(out->dtype);
    struct map map = {cpu_binary_kernel(op, dtype), dtype, k};
    struct loop loop = loop_init(3, (const struct tensor *[]){out, a, b});
    loop_run(&loop, map_row, &map);
    return 0;
}

/* cpu.c - the CPU as a device. Everything is done when a call returns. */
#include "runtime/cpu/cpu.h"

static int cpu_count(void)
{
    return 1;
}

static int cpu_synchronize(int index)
{
    (void)index;
    return 0;
}

const struct device_table cpu_device = {
    .count = cpu_count,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .transfer = cpu_copy, /* there is one CPU only */
    .copy = cpu_copy,
    .fill = cpu_fill,
    .unary = cpu_unary,
    .binary = cpu_binary,
    .sum = cpu_sum,
    .gemm = cpu_gemm,
    .mse = cpu_mse,
    .mse_grad = cpu_mse_grad,
    .synchronize = cpu_synchronize,
};

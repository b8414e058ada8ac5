/* plugin.c - what the runtime is given of cuda.so, or of sim.so, which the same files are built
 * into with the simulated CUDA runtime. */
#include "runtime/plugin.h"

#include "runtime/cuda/cuda.h"

#ifdef SIMULATED
#include "runtime/sim/sim_kernel.h"
#endif

static const struct device_table cuda_device_table = {
    .count = cuda_count,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .transfer = cuda_transfer,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .unary = cuda_unary,
    .binary = cuda_binary,
    .sum = cuda_sum,
    .gemm = cuda_gemm,
    .mse = cuda_mse,
    .mse_grad = cuda_mse_grad,
    .synchronize = cuda_synchronize,
    .add_many = cuda_add_many,
    .mark = order_mark,
    .forget = order_forget,
};

static const struct device_plugin plugin = {
    .toolkit = CUDART_VERSION,
#ifdef SIMULATED
    .name = "sim",
    .clock = sim_clock,
    .clock_wait = sim_clock_wait,
    .network_seconds = sim_network_seconds,
    .copy_seconds = sim_copy_seconds,
    .set_scale = sim_set_scale,
#else
    .name = "cuda",
#endif
    .table = &cuda_device_table,
    .collectives = &nccl_backend,
};

const struct device_plugin *device_plugin(void);

__attribute__((visibility("default"))) const struct device_plugin *device_plugin(void)
{
    return &plugin;
}

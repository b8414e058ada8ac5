#include "runtime/sim/sim_model.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sim/sim_kernel.h"

/* ---- the constants ----
 *
 * [V100]   NVIDIA Tesla V100 GPU accelerator, data sheet (SXM2): 15.7 TFLOP/s single, 7.8 TFLOP/s
 *          double precision, 900 GB/s HBM2, 16 GB; Volta architecture white paper: 80
 *          multiprocessors
 * [DGX]    NVIDIA DGX-1 with Tesla V100 system architecture: NVLink 25 GB/s per link and direction;
 *          GPU0 and GPU1 are joined by one link (NV1 in nvidia-smi topo -m)
 * [PCIe]   PCI Express 3.0: 8 GT/s, 16 lanes, 128b/130b: 15.75 GB/s per direction
 * [Graph]  A. Gray, Getting Started with CUDA Graphs, NVIDIA 2019, on a V100: 3.8 us per launch of
 *          a kernel of 2.9 us, 9.6 us with a synchronisation after each
 *
 * The rest is marked as calibrated or assumed. */

static const double flops_single = 15.7e12;   /* [V100] */
static const double flops_double = 7.8e12;    /* [V100] */
static const double memory_bandwidth = 900e9; /* [V100] */
static const double nvlink_bandwidth = 25e9;  /* [DGX] */
static const double pcie_bandwidth = 15.75e9; /* [PCIe] */

/* Calibrated, the only one: the part of peak that a full wave of tiles reaches, such that the
 * training step of one GPU takes the published 125.94 ms. */
static const double gemm_efficiency = 0.918;

/* Assumed: cuBLAS's common tile of single precision on Volta (volta_sgemm_128x128). */
enum { GEMM_TILE = 128 };

/* Assumed, an order of magnitude: what a copy and a collective take with no data at all. */
static const double copy_latency = 10e-6;
static const double collective_latency = 20e-6;

/* TCP between two processes of a host: what PyTorch's gloo reaches there, 64 MB in 67 ms; the
 * latency is assumed. */
static const double network_bandwidth = 64 * 1048576 / 67e-3;
static const double network_latency = 20e-6;

/* Assumed: what one core copies from memory to memory. */
static const double host_bandwidth = 10e9;

const struct sim_host_costs sim_host_costs = {
    .launch = 3.8e-6,      /* [Graph] */
    .synchronize = 2.9e-6, /* [Graph]: 9.6 - 2.9 - 3.8 */
    .call = 1e-6,          /* assumed */
};

const struct sim_gpu sim_gpu = {
    .name = "Tesla V100-SXM2-16GB",
    .major = 7,
    .minor = 0,
    .multiprocessors = 80,            /* [V100] */
    .memory_bytes = (size_t)16 << 30, /* [V100] */
};

/* ---- the scale ---- */

static atomic_int scale = 1;

void sim_set_scale(int factor)
{
    atomic_store(&scale, factor);
}

static double scaled(double size)
{
    double factor = atomic_load(&scale);
    return size * factor * factor;
}

/* ---- the pair ---- */

static const char *profile_name(void)
{
    const char *name = getenv("SIM_PROFILE");
    return name && *name ? name : "v100-nvlink";
}

const char *sim_profile_check(void)
{
    const char *name = profile_name();
    bool known = strcmp(name, "v100-nvlink") == 0 || strcmp(name, "v100-pcie") == 0;
    return known ? NULL : "SIM_PROFILE is neither v100-nvlink nor v100-pcie";
}

bool sim_has_peer_access(void)
{
    return strcmp(profile_name(), "v100-nvlink") == 0;
}

/* Seconds per byte from one GPU to the other. Without NVLink every piece is stored in the host's
 * memory before it goes on: it crosses PCIe twice. */
static double peer_seconds_per_byte(bool direct)
{
    return direct ? 1 / nvlink_bandwidth : 2 / pcie_bandwidth;
}

/* ---- costs ---- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double sim_kernel_seconds(double bytes)
{
    return scaled(bytes) / memory_bandwidth;
}

static int64_t tiles(int64_t size)
{
    return (size + GEMM_TILE - 1) / GEMM_TILE;
}

double sim_gemm_seconds(int64_t m, int64_t n, int64_t k, size_t element)
{
    int64_t factor = atomic_load(&scale);
    int gpu_tiles = sim_gpu.multiprocessors; /* that run at a time */
    int64_t waves = (tiles(m * factor) * tiles(n * factor) + gpu_tiles - 1) / gpu_tiles;
    double flops_per_tile = 2.0 * GEMM_TILE * GEMM_TILE * (double)(k * factor);
    double rate = (element == sizeof(double) ? flops_double : flops_single) * gemm_efficiency;
    double elements = (double)m * (double)k + (double)k * (double)n + (double)m * (double)n;
    return larger((double)waves * flops_per_tile * gpu_tiles / rate,
                  scaled(elements * (double)element) / memory_bandwidth);
}

double sim_device_copy_seconds(size_t bytes)
{
    return 2 * scaled((double)bytes) / memory_bandwidth;
}

double sim_host_copy_seconds(size_t bytes)
{
    return copy_latency + scaled((double)bytes) / pcie_bandwidth;
}

double sim_peer_copy_seconds(size_t bytes, bool direct)
{
    return copy_latency + scaled((double)bytes) * peer_seconds_per_byte(direct);
}

double sim_network_seconds(double bytes)
{
    return network_latency + scaled(bytes) / network_bandwidth;
}

double sim_copy_seconds(double bytes)
{
    return scaled(bytes) / host_bandwidth;
}

double sim_collective_seconds(double bytes)
{
    return collective_latency + scaled(bytes) * peer_seconds_per_byte(sim_has_peer_access());
}

#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H
/* sim_kernel.h - what the C build of runtime/cuda's .cu files needs of the simulation.
 *
 * A launch, with its device pointers translated, its loop run on the CPU, its cost charged:
 *
 *     if (sim_launch_begin(stream, "scale")) {
 *         float *out_view = sim_device_pointer(stream, out);
 *         const float *x_view = sim_device_pointer(stream, x);
 *         if (sim_launch_ready(stream))
 *             for (...)
 *                 kernel(out_view, x_view, ...);
 *         sim_launch_end(stream, bytes);
 *     }
 *
 * It runs at once, in the calling thread; only its time is virtual. A launch that fails leaves its
 * error for cudaGetLastError, as <<< >>> does; an address that the device cannot reach makes every
 * later call fail with cudaErrorIllegalAddress, as on a GPU, and says why on stderr. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

/* sim_launch_begin - ask for a launch; charges the calling thread for it
 * returns: false, with the error left for cudaGetLastError, if it cannot take place */
bool sim_launch_begin(cudaStream_t stream, const char *kernel);

/* sim_device_pointer - where the CPU finds what a kernel on `stream` calls `pointer`: memory of the
 * stream's device, or pinned host memory. NULL passes through.
 * errors: NULL, and sim_launch_ready is false from then on */
void *sim_device_pointer(cudaStream_t stream, const void *pointer);

/* sim_launch_ready - whether every pointer of the launch could be translated */
bool sim_launch_ready(cudaStream_t stream);

/* sim_launch_end - charge the stream for the kernel, at the full size (sim_set_scale)
 * bytes: read and written together */
void sim_launch_end(cudaStream_t stream, double bytes);

/* ---- for the plugin's entry ---- */

/* sim_set_scale - from now on charge as if every dimension were `scale` times as long: products by
 * scale³, everything else that depends on a size by scale² */
void sim_set_scale(int scale);

/* sim_clock, sim_clock_wait - the calling thread's virtual time in seconds; advance it to at least
 * `time` */
double sim_clock(void);
void sim_clock_wait(double time);

/* sim_network_seconds - what sending so many bytes to another process over TCP takes
 * sim_copy_seconds - what copying so many within the host's memory does */
double sim_network_seconds(double bytes);
double sim_copy_seconds(double bytes);

/* sim_describe_address - "memory of cuda:1, 64 bytes into 4096 allocated", "memory of cuda:0 that
 * was freed", "ordinary host memory 0x..."; in `text`, which it returns */
const char *sim_describe_address(const void *address, char *text, size_t bytes);
#endif

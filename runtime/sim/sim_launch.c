/* sim_launch.c - kernels. */
#include <stdio.h>

#include "runtime/sim/sim_internal.h"
#include "runtime/sim/sim_kernel.h"
#include "runtime/sim/sim_model.h"

/* The calling thread's launch. */
static _Thread_local struct {
    const char *kernel;
    bool ready;
} launch;

bool sim_launch_begin(cudaStream_t stream, const char *kernel)
{
    sim_operation_begin();
    launch.kernel = kernel;
    launch.ready = true;
    if (sim_entered(sim_host_costs.launch) || sim_stream_check(stream, kernel))
        return false;
    if (stream->device == sim_current_device())
        return true;
    sim_fail(cudaErrorInvalidResourceHandle,
             "%s launched on a stream of device %d while device %d is current", kernel,
             stream->device, sim_current_device());
    return false;
}

void *sim_device_pointer(cudaStream_t stream, const void *pointer)
{
    char text[160];
    void *view = NULL;
    if (!pointer || sim_find(stream->device, pointer, 1, &view) <= SIM_PINNED_MEMORY)
        return view;
    launch.ready = false;
    sim_fail_for_good("kernel %s on cuda:%d was given %s", launch.kernel, stream->device,
                      sim_describe_address(pointer, text, sizeof text));
    return NULL;
}

bool sim_launch_ready(cudaStream_t stream)
{
    (void)stream;
    return launch.ready;
}

void sim_launch_end(cudaStream_t stream, double bytes)
{
    sim_operation_end(stream, sim_stream_work(stream, sim_kernel_seconds(bytes)));
}

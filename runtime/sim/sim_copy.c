/* sim_copy.c - copies. */
#include <string.h>

#include "runtime/sim/sim_internal.h"
#include "runtime/sim/sim_kernel.h"
#include "runtime/sim/sim_model.h"

enum { TEXT = 160 };

/* One end of a copy. */
struct end {
    const void *address;
    int device; /* -1: the host's */
    bool pageable;
    void *view;
};

/* end_find - errors: cudaErrorInvalidValue; memory that a kernel could not reach either is one of
 * the copy's arguments, and known to be wrong when it is asked for */
static cudaError_t end_find(struct end *end, const char *caller, const void *address, size_t bytes)
{
    char text[TEXT];
    end->address = address;
    end->device = sim_device_of(address);
    enum sim_range range = sim_find(end->device, address, bytes, &end->view);
    end->pageable = range == SIM_HOST_MEMORY;
    if (address && range <= SIM_HOST_MEMORY)
        return cudaSuccess;
    return sim_fail(cudaErrorInvalidValue, "%s of %zu bytes: %p is %s", caller, bytes, address,
                    address ? sim_describe_address(address, text, sizeof text) : "NULL");
}

static bool kind_fits(enum cudaMemcpyKind kind, const struct end *to, const struct end *from)
{
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return kind == cudaMemcpyDefault ||
           (to_device == (to->device >= 0) && from_device == (from->device >= 0));
}

static cudaError_t kind_check(enum cudaMemcpyKind kind, const struct end *to,
                              const struct end *from)
{
    static const char *const names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                        "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"};
    char to_text[TEXT], from_text[TEXT];
    if (kind > cudaMemcpyDefault)
        return sim_fail(cudaErrorInvalidMemcpyDirection, "cudaMemcpyAsync of kind %d", (int)kind);
    if (kind_fits(kind, to, from))
        return cudaSuccess;
    return sim_fail(cudaErrorInvalidValue, "cudaMemcpyAsync, %s, to %s from %s", names[kind],
                    sim_describe_address(to->address, to_text, sizeof to_text),
                    sim_describe_address(from->address, from_text, sizeof from_text));
}

/* ---- time ---- */

/* When the last copy from one device to the other ends: the link carries one at a time. */
static double links[SIM_DEVICES][SIM_DEVICES];

static double take_link(int from, int to, double ready, double seconds)
{
    pthread_mutex_lock(&sim_lock);
    double end = links[from][to] = sim_max(links[from][to], ready) + seconds;
    pthread_mutex_unlock(&sim_lock);
    return end;
}

static double copy_charge(cudaStream_t stream, const struct end *to, const struct end *from,
                          size_t bytes)
{
    if (to->device < 0 && from->device < 0)
        return sim_stream_work(stream, 0);
    if (to->device < 0 || from->device < 0)
        return sim_stream_work(stream, sim_host_copy_seconds(bytes));
    if (to->device == from->device)
        return sim_stream_work(stream, sim_device_copy_seconds(bytes));
    bool direct = sim_peer_enabled(from->device, to->device);
    double end = take_link(from->device, to->device, sim_stream_ready(stream),
                           sim_peer_copy_seconds(bytes, direct));
    sim_stream_end_at(stream, end);
    return end;
}

/* A copy from or to ordinary host memory is over when the call returns, as CUDA has it. */
static void copy_run(cudaStream_t stream, const struct end *to, const struct end *from,
                     size_t bytes)
{
    memcpy(to->view, from->view, bytes);
    double end = copy_charge(stream, to, from, bytes);
    sim_operation_end(stream, end);
    if (to->pageable || from->pageable)
        sim_clock_wait(end);
}

/* ---- calls ---- */

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    struct end to_end, from_end;
    sim_operation_begin();
    cudaError_t error = sim_entered(sim_host_costs.launch);
    if (error || (error = sim_stream_check(stream, "cudaMemcpyAsync")) || bytes == 0 ||
        (error = end_find(&to_end, "cudaMemcpyAsync", to, bytes)) ||
        (error = end_find(&from_end, "cudaMemcpyAsync", from, bytes)) ||
        (error = kind_check(kind, &to_end, &from_end)))
        return error;
    copy_run(stream, &to_end, &from_end, bytes);
    return cudaSuccess;
}

static cudaError_t device_check(const struct end *end, int device)
{
    char text[TEXT];
    if (end->device == device && device >= 0)
        return cudaSuccess;
    return sim_fail(cudaErrorInvalidValue, "cudaMemcpyPeerAsync: not memory of device %d but %s",
                    device, sim_describe_address(end->address, text, sizeof text));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    struct end to_end, from_end;
    sim_operation_begin();
    cudaError_t error = sim_entered(sim_host_costs.launch);
    if (error || (error = sim_stream_check(stream, "cudaMemcpyPeerAsync")) || bytes == 0 ||
        (error = end_find(&to_end, "cudaMemcpyPeerAsync", to, bytes)) ||
        (error = end_find(&from_end, "cudaMemcpyPeerAsync", from, bytes)) ||
        (error = device_check(&to_end, to_device)) ||
        (error = device_check(&from_end, from_device)))
        return error;
    copy_run(stream, &to_end, &from_end, bytes);
    return cudaSuccess;
}

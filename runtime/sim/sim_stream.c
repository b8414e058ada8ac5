/* sim_stream.c - devices, streams, events, and the virtual time of all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sim/sim_internal.h"
#include "runtime/sim/sim_kernel.h"
#include "runtime/sim/sim_model.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- threads ---- */

static _Thread_local struct {
    int device;
    double time;
} host;

double sim_max(double a, double b)
{
    return a > b ? a : b;
}

double sim_clock(void)
{
    return host.time;
}

void sim_clock_wait(double time)
{
    host.time = sim_max(host.time, time);
}

void sim_host_charge(double seconds)
{
    host.time += seconds;
}

void sim_host_return(double time)
{
    host.time = time;
}

int sim_current_device(void)
{
    return host.device;
}

/* ---- devices ---- */

static bool peer_enabled[SIM_DEVICES][SIM_DEVICES]; /* under the lock */

static bool is_device(int device)
{
    return device >= 0 && device < SIM_DEVICES;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *wrong = sim_profile_check();
    if (wrong)
        return sim_fail(cudaErrorInitializationError, "%s", wrong);
    *count = SIM_DEVICES;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (!is_device(device))
        return sim_fail(cudaErrorInvalidDevice, "there is no device %d: they are 0 to %d", device,
                        SIM_DEVICES - 1);
    host.device = device;
    return sim_entered(0);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    if (!is_device(device))
        return sim_fail(cudaErrorInvalidDevice, "there is no device %d", device);
    *properties = (struct cudaDeviceProp){.totalGlobalMem = sim_gpu.memory_bytes,
                                          .major = sim_gpu.major,
                                          .minor = sim_gpu.minor,
                                          .multiProcessorCount = sim_gpu.multiprocessors,
                                          .pciBusID = device};
    snprintf(properties->name, sizeof properties->name, "%s", sim_gpu.name);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!is_device(device) || !is_device(peer))
        return sim_fail(cudaErrorInvalidDevice, "there are no devices %d and %d", device, peer);
    *can = device != peer && sim_has_peer_access();
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    int can = 0;
    cudaError_t error = cudaDeviceCanAccessPeer(&can, host.device, peer);
    if (error)
        return error;
    if (!can)
        return sim_fail(cudaErrorPeerAccessUnsupported,
                        "device %d cannot reach the memory of device %d", host.device, peer);
    if (flags != 0)
        return sim_fail(cudaErrorInvalidValue, "the flags must be 0");
    pthread_mutex_lock(&sim_lock);
    bool was_enabled = peer_enabled[host.device][peer];
    peer_enabled[host.device][peer] = true;
    pthread_mutex_unlock(&sim_lock);
    return was_enabled ? sim_fail(cudaErrorPeerAccessAlreadyEnabled,
                                  "peer access to device %d is enabled already", peer)
                       : cudaSuccess;
}

/* Copies are direct if either side may reach the other. */
bool sim_peer_enabled(int device, int peer)
{
    pthread_mutex_lock(&sim_lock);
    bool enabled = peer_enabled[device][peer] || peer_enabled[peer][device];
    pthread_mutex_unlock(&sim_lock);
    return enabled;
}

/* ---- streams ---- */

static struct CUstream_st *streams;
static struct CUevent_st *events;

/* With the lock held. */
static bool is_stream(const struct CUstream_st *stream)
{
    const struct CUstream_st *at = streams;
    while (at && at != stream)
        at = at->next;
    return stream && at;
}

cudaError_t sim_stream_check(cudaStream_t stream, const char *caller)
{
    pthread_mutex_lock(&sim_lock);
    bool known = is_stream(stream);
    pthread_mutex_unlock(&sim_lock);
    if (known)
        return cudaSuccess;
    return sim_fail(cudaErrorInvalidResourceHandle, "%s with %s", caller,
                    stream ? "what is not a stream" : "the default stream, which is not simulated");
}

double sim_stream_ready(cudaStream_t stream)
{
    pthread_mutex_lock(&sim_lock);
    double time = sim_max(stream->time, host.time);
    pthread_mutex_unlock(&sim_lock);
    return time;
}

double sim_stream_work(cudaStream_t stream, double seconds)
{
    pthread_mutex_lock(&sim_lock);
    double end = stream->time = sim_max(stream->time, host.time) + seconds;
    pthread_mutex_unlock(&sim_lock);
    return end;
}

void sim_stream_end_at(cudaStream_t stream, double time)
{
    pthread_mutex_lock(&sim_lock);
    stream->time = sim_max(stream->time, time);
    pthread_mutex_unlock(&sim_lock);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    cudaError_t error = sim_entered(sim_host_costs.call);
    if (error)
        return error;
    if (flags != cudaStreamNonBlocking)
        return sim_fail(cudaErrorNotSupported,
                        "only streams with cudaStreamNonBlocking are simulated");
    struct CUstream_st *made = calloc(1, sizeof *made);
    if (!made)
        return sim_fail(cudaErrorMemoryAllocation, "out of host memory for a stream");
    made->device = host.device;
    pthread_mutex_lock(&sim_lock);
    made->next = streams;
    *stream = streams = made;
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

/* Waits are for the time; the work itself is long done. */
static cudaError_t wait_until(double time)
{
    sim_clock_wait(time);
    return sim_entered(sim_host_costs.synchronize);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t error = sim_stream_check(stream, "cudaStreamSynchronize");
    return error ? error : wait_until(sim_stream_ready(stream));
}

cudaError_t cudaDeviceSynchronize(void)
{
    double time = 0;
    pthread_mutex_lock(&sim_lock);
    for (const struct CUstream_st *at = streams; at; at = at->next)
        if (at->device == host.device)
            time = sim_max(time, at->time);
    pthread_mutex_unlock(&sim_lock);
    return wait_until(time);
}

/* ---- events ---- */

static cudaError_t event_check(cudaEvent_t event, const char *caller)
{
    pthread_mutex_lock(&sim_lock);
    const struct CUevent_st *at = events;
    while (at && at != event)
        at = at->next;
    pthread_mutex_unlock(&sim_lock);
    if (event && at)
        return cudaSuccess;
    return sim_fail(cudaErrorInvalidResourceHandle, "%s with what is not an event, or no longer",
                    caller);
}

static double event_time(cudaEvent_t event)
{
    pthread_mutex_lock(&sim_lock);
    double time = event->time;
    pthread_mutex_unlock(&sim_lock);
    return time;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    cudaError_t error = sim_entered(sim_host_costs.call);
    if (error)
        return error;
    if (flags & ~(unsigned int)(cudaEventBlockingSync | cudaEventDisableTiming))
        return sim_fail(cudaErrorInvalidValue, "an event with unknown flags %#x", flags);
    struct CUevent_st *made = calloc(1, sizeof *made);
    if (!made)
        return sim_fail(cudaErrorMemoryAllocation, "out of host memory for an event");
    made->device = host.device;
    pthread_mutex_lock(&sim_lock);
    made->next = events;
    *event = events = made;
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t error = event_check(event, "cudaEventDestroy");
    if (error)
        return error;
    pthread_mutex_lock(&sim_lock);
    struct CUevent_st **at = &events;
    while (*at != event)
        at = &(*at)->next;
    *at = event->next;
    pthread_mutex_unlock(&sim_lock);
    free(event);
    return sim_entered(sim_host_costs.call);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = sim_entered(sim_host_costs.call);
    if (error || (error = event_check(event, "cudaEventRecord")) ||
        (error = sim_stream_check(stream, "cudaEventRecord")))
        return error;
    if (event->device != stream->device)
        return sim_fail(cudaErrorInvalidResourceHandle,
                        "cudaEventRecord of an event of device %d on a stream of device %d",
                        event->device, stream->device);
    pthread_mutex_lock(&sim_lock);
    event->time = sim_max(stream->time, host.time);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    cudaError_t error = sim_entered(sim_host_costs.call);
    if (error || (error = event_check(event, "cudaStreamWaitEvent")) ||
        (error = sim_stream_check(stream, "cudaStreamWaitEvent")))
        return error;
    if (flags != 0)
        return sim_fail(cudaErrorInvalidValue, "cudaStreamWaitEvent: the flags must be 0");
    sim_stream_end_at(stream, event_time(event));
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = event_check(event, "cudaEventQuery");
    if (error || (error = sim_entered(sim_host_costs.call)))
        return error;
    return event_time(event) <= host.time ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = event_check(event, "cudaEventSynchronize");
    return error ? error : wait_until(event_time(event));
}

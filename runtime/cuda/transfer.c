/* transfer.c - copies between two devices. They run in a stream of their own: it waits for the
 * source, and for the target's memory, which is allocated in the order of its device's computing
 * stream; that stream then waits for the copy, and the source is kept until it has been made. */
#include "runtime/cuda/cuda.h"

static size_t bytes_of(const struct tensor *x)
{
    return (size_t)x->numel * (size_t)dtype_size(x->dtype);
}

static int from_host(struct tensor *out, const struct tensor *x)
{
    struct cuda_device *device = order_write(out);
    if (!device || order_after(device, device->compute, device->from_host) < 0 ||
        staging_copy_in(device, out->data, x->data, bytes_of(x), device->from_host) < 0)
        return -1;
    return order_after(device, device->from_host, device->compute);
}

static int to_host(struct tensor *out, const struct tensor *x)
{
    struct cuda_device *device = cuda_enter(x->storage->device.index);
    if (!device || order_after_tensor(x, device->to_host) < 0)
        return -1;
    return staging_copy_out(device, out->data, x->data, bytes_of(x), device->to_host);
}

static int from_peer(struct tensor *out, const struct tensor *x)
{
    int from = x->storage->device.index, to = out->storage->device.index;
    cudaStream_t stream = cuda_peer_stream(from, to);
    struct cuda_device *target = stream ? order_write(out) : NULL;
    if (!target || order_after(target, target->compute, stream) < 0 ||
        order_after_tensor(x, stream) < 0 || order_after_readers(x, stream) < 0 ||
        CUDA_TRY(cudaMemcpyPeerAsync(out->data, to, x->data, from, bytes_of(x), stream)) < 0)
        return -1;
    cudaEvent_t done = order_event(stream);
    if (!done)
        return -1;
    int status = cuda_enter(to) ? CUDA_TRY(cudaStreamWaitEvent(target->compute, done, 0)) : -1;
    order_keep(x, done);
    return status;
}

int cuda_transfer(struct tensor *out, const struct tensor *x)
{
    order_release();
    if (x->numel == 0)
        return 0;
    if (x->storage->device.kind == DEVICE_CPU)
        return from_host(out, x);
    return out->storage->device.kind == DEVICE_CPU ? to_host(out, x) : from_peer(out, x);
}

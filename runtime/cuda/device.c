#include <stdint.h>

#include "runtime/cuda/cuda.h"
#include "runtime/error.h"

static struct cuda_device devices[CUDA_DEVICES] = {
    [0 ... CUDA_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                .staging = {.lock = PTHREAD_MUTEX_INITIALIZER}}};

static int device_count;

static void count_devices(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        count = 0;
    device_count = count < CUDA_DEVICES ? count : CUDA_DEVICES;
}

int cuda_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_devices);
    return device_count;
}

/* ---- entering a device ---- */

/* Freed memory stays in the device's pool, for the next allocation. */
static int keep_memory(int index)
{
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    if (CUDA_TRY(cudaDeviceGetDefaultMemPool(&pool, index)) < 0)
        return -1;
    return CUDA_TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

static int make_ready(struct cuda_device *device)
{
    if (keep_memory(device->index) < 0 ||
        CUDA_TRY(cudaStreamCreateWithFlags(&device->compute, cudaStreamNonBlocking)) < 0 ||
        CUDA_TRY(cudaStreamCreateWithFlags(&device->communicate, cudaStreamNonBlocking)) < 0 ||
        CUDA_TRY(cudaStreamCreateWithFlags(&device->from_host, cudaStreamNonBlocking)) < 0 ||
        CUDA_TRY(cudaStreamCreateWithFlags(&device->to_host, cudaStreamNonBlocking)) < 0 ||
        CUDA_TRY(cudaEventCreateWithFlags(&device->fence, cudaEventDisableTiming)) < 0)
        return -1;
    atomic_store(&device->ready, true);
    return 0;
}

struct cuda_device *cuda_enter(int index)
{
    static _Thread_local int current = -1;
    struct cuda_device *device = &devices[index];
    if (current != index && CUDA_TRY(cudaSetDevice(index)) < 0)
        return NULL;
    current = index;
    if (atomic_load_explicit(&device->ready, memory_order_acquire))
        return device;
    pthread_mutex_lock(&device->lock);
    device->index = index;
    int status = atomic_load(&device->ready) ? 0 : make_ready(device);
    pthread_mutex_unlock(&device->lock);
    return status < 0 ? NULL : device;
}

/* ---- peers ---- */

static int enable_peer(int index, int peer)
{
    cudaMemPool_t pool;
    const struct cudaMemAccessDesc access = {
        .location = {.type = cudaMemLocationTypeDevice, .id = index},
        .flags = cudaMemAccessFlagsProtReadWrite};
    if (CUDA_TRY(cudaDeviceEnablePeerAccess(peer, 0)) < 0 ||
        CUDA_TRY(cudaDeviceGetDefaultMemPool(&pool, peer)) < 0)
        return -1;
    return CUDA_TRY(cudaMemPoolSetAccess(pool, &access, 1));
}

/* Let device `index` reach the memory of device `peer`. Where it cannot, copies go by the host. */
static int reach(int index, int peer)
{
    static bool reached[CUDA_DEVICES][CUDA_DEVICES];
    int can = 0;
    if (reached[index][peer])
        return 0;
    if (!cuda_enter(index) || CUDA_TRY(cudaDeviceCanAccessPeer(&can, index, peer)) < 0 ||
        (can && enable_peer(index, peer) < 0))
        return -1;
    reached[index][peer] = true;
    return 0;
}

static cudaStream_t make_peer_stream(int from, int to)
{
    cudaStream_t stream;
    if (reach(to, from) < 0 || reach(from, to) < 0 || !cuda_enter(from) ||
        CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) < 0)
        return NULL;
    return stream;
}

cudaStream_t cuda_peer_stream(int from, int to)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    cudaStream_t *stream = &devices[from].to[to];
    pthread_mutex_lock(&lock);
    if (!*stream)
        *stream = make_peer_stream(from, to);
    cudaStream_t made = *stream;
    pthread_mutex_unlock(&lock);
    return made;
}

/* ---- memory ---- */

void *cuda_alloc(int index, size_t bytes)
{
    void *memory = NULL;
    struct cuda_device *device = cuda_enter(index);
    if (!device)
        return NULL;
    order_release();
    cudaError_t error = cudaMallocAsync(&memory, bytes, device->compute);
    if (error == cudaErrorMemoryAllocation) { /* some may be free once the device is idle */
        (void)cudaGetLastError();
        if (cuda_synchronize(index) < 0)
            return NULL;
        order_release();
        error = cudaMallocAsync(&memory, bytes, device->compute);
    }
    return cuda_check(error, "cudaMallocAsync") < 0 ? NULL : memory;
}

/* What may still use the memory was asked of the computing stream, which the freeing comes after. A
 * device that has failed is not complained about here. */
void cuda_free(int index, void *memory, size_t bytes)
{
    (void)bytes;
    struct error *pending = error_take();
    struct cuda_device *device = cuda_enter(index);
    if (device && cudaFreeAsync(memory, device->compute) != cudaSuccess)
        (void)cudaGetLastError();
    error_clear();
    error_raise(pending);
}

/* ---- waiting for everything ---- */

static int wait_for_stream(cudaStream_t stream)
{
    cudaEvent_t event = order_event(stream);
    int status = event ? order_wait(event) : -1;
    if (event)
        cudaEventDestroy(event);
    return status;
}

int cuda_synchronize(int index)
{
    struct cuda_device *device = cuda_enter(index);
    if (!device || wait_for_stream(device->communicate) < 0 || wait_for_stream(device->compute) < 0)
        return -1;
    return CUDA_TRY(cudaDeviceSynchronize());
}

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/cuda/cuda.h"
#include "runtime/error.h"

/* ---- between streams ---- */

cudaEvent_t order_event(cudaStream_t stream)
{
    cudaEvent_t event;
    if (CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) < 0)
        return NULL;
    if (CUDA_TRY(cudaEventRecord(event, stream)) == 0)
        return event;
    cudaEventDestroy(event);
    return NULL;
}

/* A wait refers to what the event means when it is asked for, so one event serves for all. */
int order_after(struct cuda_device *current, cudaStream_t stream, cudaStream_t waiting)
{
    pthread_mutex_lock(&current->lock);
    int status = CUDA_TRY(cudaEventRecord(current->fence, stream));
    if (status == 0)
        status = CUDA_TRY(cudaStreamWaitEvent(waiting, current->fence, 0));
    pthread_mutex_unlock(&current->lock);
    return status;
}

/* ---- collectives ---- */

void *order_fence(int device)
{
    struct cuda_device *entered = cuda_enter(device);
    return entered ? order_event(entered->compute) : NULL;
}

int order_join(int device, void *fence)
{
    struct cuda_device *entered = cuda_enter(device);
    int status = entered ? CUDA_TRY(cudaStreamWaitEvent(entered->compute, fence, 0)) : -1;
    cudaEventDestroy(fence);
    return status;
}

/* ---- when a tensor is complete ---- */

/* Of every storage's `ready` and `reading`, and of the list of the kept ones: tasks of two threads
 * may return the same storage, or one takes it to another device meanwhile. */
static pthread_mutex_t marks_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned version_of(const struct storage *storage)
{
    return atomic_load_explicit(&storage->version, memory_order_relaxed);
}

/* Without the mark, copies wait for more than they need: no error. */
void order_mark(struct tensor *x)
{
    struct storage *storage = x->storage;
    struct error *pending = error_take();
    struct cuda_device *device = cuda_enter(storage->device.index);
    pthread_mutex_lock(&marks_lock);
    if (device && storage->ready)
        order_forget(storage);
    storage->ready = device ? order_event(device->compute) : NULL;
    storage->ready_version = version_of(storage);
    pthread_mutex_unlock(&marks_lock);
    error_clear();
    error_raise(pending);
}

void order_forget(struct storage *storage)
{
    cudaEventDestroy(storage->ready);
    storage->ready = NULL;
}

int order_after_tensor(const struct tensor *x, cudaStream_t waiting)
{
    const struct storage *storage = x->storage;
    struct cuda_device *device = cuda_enter(storage->device.index);
    if (!device)
        return -1;
    pthread_mutex_lock(&marks_lock);
    bool marked = storage->ready && storage->ready_version == version_of(storage);
    int status = marked ? CUDA_TRY(cudaStreamWaitEvent(waiting, storage->ready, 0)) : 0;
    pthread_mutex_unlock(&marks_lock);
    if (marked)
        return status;
    return order_after(device, device->compute, waiting);
}

/* ---- copies under way read their source ---- */

/* A storage that is kept until the event has come. The storage's `reading` is the event of the
 * youngest of them, whose copy came after those before it. */
struct kept {
    struct kept *next;
    struct storage *storage;
    cudaEvent_t done;
};

static struct kept *kept_first;
static atomic_int kept_count;

void order_keep(const struct tensor *x, cudaEvent_t done)
{
    struct kept *kept = malloc(sizeof *kept);
    if (!kept) { /* then the host waits */
        cudaEventSynchronize(done);
        cudaEventDestroy(done);
        return;
    }
    object_retain(&x->storage->object);
    *kept = (struct kept){.storage = x->storage, .done = done};
    pthread_mutex_lock(&marks_lock);
    kept->next = kept_first;
    kept_first = kept;
    atomic_store(&x->storage->reading, done);
    atomic_fetch_add(&kept_count, 1);
    pthread_mutex_unlock(&marks_lock);
}

/* take_done - out of the list, those whose event has come */
static struct kept *take_done(void)
{
    struct kept *taken = NULL;
    pthread_mutex_lock(&marks_lock);
    for (struct kept **link = &kept_first; *link;) {
        struct kept *kept = *link;
        if (cudaEventQuery(kept->done) == cudaErrorNotReady) {
            link = &kept->next;
            continue;
        }
        *link = kept->next;
        kept->next = taken;
        taken = kept;
        atomic_fetch_sub(&kept_count, 1);
        if (atomic_load(&kept->storage->reading) == kept->done)
            atomic_store(&kept->storage->reading, NULL);
    }
    pthread_mutex_unlock(&marks_lock);
    return taken;
}

void order_release(void)
{
    if (atomic_load_explicit(&kept_count, memory_order_relaxed) == 0)
        return;
    for (struct kept *kept = take_done(), *next; kept; kept = next) {
        next = kept->next;
        cudaEventDestroy(kept->done);
        object_release(&kept->storage->object);
        free(kept);
    }
}

int order_after_readers(const struct tensor *x, cudaStream_t waiting)
{
    struct storage *storage = x->storage;
    if (!atomic_load_explicit(&storage->reading, memory_order_acquire))
        return 0;
    pthread_mutex_lock(&marks_lock);
    cudaEvent_t reading = atomic_load(&storage->reading);
    int status = reading ? CUDA_TRY(cudaStreamWaitEvent(waiting, reading, 0)) : 0;
    pthread_mutex_unlock(&marks_lock);
    return status;
}

struct cuda_device *order_write(struct tensor *x)
{
    struct cuda_device *device = cuda_enter(x->storage->device.index);
    return device && order_after_readers(x, device->compute) == 0 ? device : NULL;
}

/* ---- the host ---- */

/* Collectives are done soon or, if a peer is gone, never. */
static void pause_shortly(int turn)
{
    if (turn < 1000)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000}, NULL);
}

int order_wait(cudaEvent_t event)
{
    bool under_way;
    int watched = nccl_watch(&under_way);
    for (int turn = 0; watched == 0 && under_way && cudaEventQuery(event) == cudaErrorNotReady;
         turn++) {
        pause_shortly(turn);
        watched = nccl_watch(&under_way);
    }
    return watched < 0 ? -1 : CUDA_TRY(cudaEventSynchronize(event));
}

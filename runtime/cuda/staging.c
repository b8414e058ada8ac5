/* staging.c - the host's memory is copied through pinned memory, piece by piece: only from and to
 * such memory does a GPU copy by itself, while the host fills or empties the other piece. */
#include <string.h>

#include "runtime/clock.h"
#include "runtime/cuda/cuda.h"

enum { SLOT_BYTES = 4 << 20 };

/* The next slot, with nothing under way in it. */
static struct slot *slot_take(struct staging *staging, size_t piece)
{
    struct slot *slot = &staging->slot[piece % STAGING_SLOTS];
    if (!slot->memory &&
        (CUDA_TRY(cudaEventCreateWithFlags(&slot->done, cudaEventDisableTiming)) < 0 ||
         CUDA_TRY(cudaHostAlloc(&slot->memory, SLOT_BYTES, cudaHostAllocDefault)) < 0))
        return NULL;
    return CUDA_TRY(cudaEventSynchronize(slot->done)) < 0 ? NULL : slot;
}

static size_t piece_bytes(size_t piece, size_t bytes)
{
    size_t left = bytes - piece * SLOT_BYTES;
    return left < SLOT_BYTES ? left : SLOT_BYTES;
}

static int piece_in(struct staging *staging, size_t piece, void *to, const void *from, size_t bytes,
                    cudaStream_t stream)
{
    struct slot *slot = slot_take(staging, piece);
    size_t offset = piece * SLOT_BYTES, n = piece_bytes(piece, bytes);
    if (!slot)
        return -1;
    memcpy(slot->memory, (const char *)from + offset, n);
    clock_copy(n);
    if (CUDA_TRY(cudaMemcpyAsync((char *)to + offset, slot->memory, n, cudaMemcpyHostToDevice,
                                 stream)) < 0)
        return -1;
    return CUDA_TRY(cudaEventRecord(slot->done, stream));
}

int staging_copy_in(struct cuda_device *device, void *to, const void *from, size_t bytes,
                    cudaStream_t stream)
{
    int status = 0;
    pthread_mutex_lock(&device->staging.lock);
    for (size_t piece = 0; status == 0 && piece * SLOT_BYTES < bytes; piece++)
        status = piece_in(&device->staging, piece, to, from, bytes, stream);
    pthread_mutex_unlock(&device->staging.lock);
    return status;
}

static int piece_out_begin(struct staging *staging, size_t piece, const void *from, size_t bytes,
                           cudaStream_t stream)
{
    struct slot *slot = slot_take(staging, piece);
    if (!slot ||
        CUDA_TRY(cudaMemcpyAsync(slot->memory, (const char *)from + piece * SLOT_BYTES,
                                 piece_bytes(piece, bytes), cudaMemcpyDeviceToHost, stream)) < 0)
        return -1;
    return CUDA_TRY(cudaEventRecord(slot->done, stream));
}

static int piece_out_end(struct staging *staging, size_t piece, void *to, size_t bytes)
{
    struct slot *slot = &staging->slot[piece % STAGING_SLOTS];
    if (order_wait(slot->done) < 0)
        return -1;
    memcpy((char *)to + piece * SLOT_BYTES, slot->memory, piece_bytes(piece, bytes));
    clock_copy(piece_bytes(piece, bytes));
    return 0;
}

/* One piece is on its way while the one before it is taken out. */
int staging_copy_out(struct cuda_device *device, void *to, const void *from, size_t bytes,
                     cudaStream_t stream)
{
    size_t pieces = (bytes + SLOT_BYTES - 1) / SLOT_BYTES;
    pthread_mutex_lock(&device->staging.lock);
    int status = piece_out_begin(&device->staging, 0, from, bytes, stream);
    for (size_t piece = 0; status == 0 && piece < pieces; piece++) {
        if (piece + 1 < pieces)
            status = piece_out_begin(&device->staging, piece + 1, from, bytes, stream);
        if (status == 0)
            status = piece_out_end(&device->staging, piece, to, bytes);
    }
    pthread_mutex_unlock(&device->staging.lock);
    return status;
}

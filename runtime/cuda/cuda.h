#ifndef RUNTIME_CUDA_CUDA_H
#define RUNTIME_CUDA_CUDA_H
/* cuda.h - the CUDA device's own files among themselves.
 *
 *     device.c      devices, their streams and memory
 *     order.c       who waits for what: events between streams, and the host
 *     transfer.c    copies between devices and with the host; staging.c its pinned memory
 *     operations.c  the device table: launches of kernels; gemm.c of cuBLAS
 *     nccl.c        collectives
 *     plugin.c      what the runtime is given
 *
 * Every device has one stream that computes; memory is allocated and freed in its order. Copies to
 * another device and collectives run in streams of their own, so that they overlap with computing,
 * and wait for it, or it for them, by events. The host waits for nothing but values that it reads.
 *
 * Compiled against NVIDIA's headers, or those of runtime/sim/include, which declare what is used
 * here and in the simulation's tests. Functions return -1, or NULL, with an error pending. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/tensor_internal.h"

enum { CUDA_DEVICES = 16, STAGING_SLOTS = 2 };

/* Pinned memory, in pieces, through which the host's memory is copied. */
struct staging {
    pthread_mutex_t lock;
    struct slot {
        void *memory;
        cudaEvent_t done; /* the last copy from or to it */
    } slot[STAGING_SLOTS];
};

struct cuda_device {
    int index;
    atomic_bool ready;
    pthread_mutex_t lock; /* of what follows, and of uses of cublas */
    cudaStream_t compute, communicate;
    cudaStream_t from_host, to_host, to[CUDA_DEVICES]; /* made when first needed */
    cublasHandle_t cublas;                             /* likewise */
    cudaEvent_t fence;                                 /* see order.c */
    struct staging staging;
};

/* ---- errors.c ---- */

/* CUDA_TRY - 0, or -1 with the error's name in a RuntimeError; MemoryError if there is no memory */
#define CUDA_TRY(call) cuda_check((call), #call)
int cuda_check(cudaError_t error, const char *call);
#define CUBLAS_TRY(call) cublas_check((call), #call)
int cublas_check(cublasStatus_t status, const char *call);

/* ---- device.c ---- */

int cuda_count(void);

/* cuda_enter - make the device the calling thread's current one, and ready for use */
struct cuda_device *cuda_enter(int index);

/* cuda_peer_stream - the stream of device `from` that copies to device `to`; makes each reach the
 * other's memory, where that is possible. The current device is undefined afterwards. */
cudaStream_t cuda_peer_stream(int from, int to);

void *cuda_alloc(int index, size_t bytes);
void cuda_free(int index, void *memory, size_t bytes);
int cuda_synchronize(int index);

/* ---- order.c ---- */

/* order_after - `waiting` goes on when what was asked of `stream` of the current device is done
 * order_event - a new event at this point of a stream of the current device */
int order_after(struct cuda_device *current, cudaStream_t stream, cudaStream_t waiting);
cudaEvent_t order_event(cudaStream_t stream);

/* order_fence, order_join - as fence and join in plugin.h */
void *order_fence(int device);
int order_join(int device, void *fence);

/* order_mark, order_forget - as in the device table */
void order_mark(struct tensor *x);
void order_forget(struct storage *storage);

/* order_after_tensor - `waiting` goes on when x is complete. Enters x's device. */
int order_after_tensor(const struct tensor *x, cudaStream_t waiting);

/* order_after_readers - `waiting` goes on when the copies of x's memory so far have been made */
int order_after_readers(const struct tensor *x, cudaStream_t waiting);

/* order_write - before x is written to: whatever still reads it is waited for by its device's
 * computing stream. returns: x's device, entered */
struct cuda_device *order_write(struct tensor *x);

/* order_keep - hold x's memory, unchanged, until the event, which is taken over, has come */
void order_keep(const struct tensor *x, cudaEvent_t done);

/* order_release - let go of what needs no holding any more */
void order_release(void);

/* order_wait - the host waits for an event; meanwhile it sees to it that no peer that is gone is
 * waited for. errors: -1, also if what it waited for has failed */
int order_wait(cudaEvent_t event);

/* ---- transfer.c, staging.c, operations.c, gemm.c ---- */
int cuda_transfer(struct tensor *out, const struct tensor *x);

int staging_copy_in(struct cuda_device *device, void *to, const void *from, size_t bytes,
                    cudaStream_t stream);
int staging_copy_out(struct cuda_device *device, void *to, const void *from, size_t bytes,
                     cudaStream_t stream);

int cuda_copy(struct tensor *out, const struct tensor *x);
int cuda_fill(struct tensor *out, double value);
int cuda_unary(enum unary op, struct tensor *out, const struct tensor *x, double k);
int cuda_binary(enum binary op, struct tensor *out, const struct tensor *a, const struct tensor *b,
                double k);
int cuda_sum(struct tensor *out, const struct tensor *x, double k);
int cuda_mse(struct tensor *out, const struct tensor *output, const struct tensor *target);
int cuda_mse_grad(struct tensor *out, const struct tensor *gradient, const struct tensor *output,
                  const struct tensor *target);
int cuda_add_many(int n, struct tensor *const *out, struct tensor *const *x, double k);
int cuda_gemm(struct tensor *out, const struct tensor *a, const struct tensor *b, double beta);

/* ---- nccl.c ---- */

extern const struct dist_backend nccl_backend;

/* nccl_watch - whether collectives are under way; those whose peers are gone, or too late, are
 * given up. errors: -1, if some were */
int nccl_watch(bool *under_way);
#endif

#ifndef SIM_INTERNAL_H
#define SIM_INTERNAL_H
/* sim_internal.h - the state of the simulated CUDA runtime.
 *
 * What is asked for is done at once, in the calling thread; only its time is virtual. Each thread
 * has a time, each stream has one: when the work put into it so far will have ended. Work starts
 * when its stream and the thread that asks for it are both there. An event is a time.
 *
 * One lock guards streams, events, links and the tables of memory; the work itself is done outside
 * of it. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "runtime/sim/sim_address.h"

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    double time;
};

struct CUevent_st {
    struct CUevent_st *next;
    int device;
    double time; /* of what it captured last */
};

extern pthread_mutex_t sim_lock;

/* ---- errors ---- */

/* sim_fail - leave an error for cudaGetLastError, and what happened for cudaGetErrorString
 * returns: the error */
cudaError_t sim_fail(cudaError_t error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* sim_fail_for_good - an illegal address: every later call fails too, and stderr says why
 * returns: the error */
cudaError_t sim_fail_for_good(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sim_entered - what a call that talks to the GPU does first: charge the calling thread for it.
 * returns: cudaSuccess, or the error that stays for good */
cudaError_t sim_entered(double seconds);

/* ---- devices and time ---- */

int sim_current_device(void);
double sim_max(double a, double b);
void sim_host_charge(double seconds);

/* sim_host_return - the calling thread's time is `time` again: what it did since, it did for the
 * simulation */
void sim_host_return(double time);

/* sim_stream_check - errors: cudaErrorInvalidResourceHandle for what is no stream */
cudaError_t sim_stream_check(cudaStream_t stream, const char *caller);

/* sim_stream_work - `seconds` of work put into the stream now. returns: when it ends
 * sim_stream_ready - when work put into it now could start
 * sim_stream_end_at - the stream's work ends at `time` */
double sim_stream_work(cudaStream_t stream, double seconds);
double sim_stream_ready(cudaStream_t stream);
void sim_stream_end_at(cudaStream_t stream, double time);

bool sim_peer_enabled(int device, int peer);

/* ---- memory ---- */

/* What a range of addresses is. */
enum sim_range {
    SIM_DEVICE_MEMORY, /* of the device that was asked for */
    SIM_PINNED_MEMORY, /* the host's, from cudaHostAlloc */
    SIM_HOST_MEMORY,   /* any other of the host's */
    SIM_OTHER_DEVICE,
    SIM_NOT_ALLOCATED, /* an address of a device, but not, or no longer, in an allocation */
    SIM_TOO_SHORT,     /* the allocation ends within the range */
};

/* sim_operation_begin - what sim_find finds from now on is for a new operation of this thread */
void sim_operation_begin(void);

/* sim_find - what `bytes` from `address` on are, seen from a device; *view becomes where the CPU
 * finds them, unless they are no memory. The calling thread's operation is said to use them
 * (sim_operation_end). */
enum sim_range sim_find(int device, const void *address, size_t bytes, void **view);

/* sim_device_of - the device of an address, -1 for the host's */
int sim_device_of(const void *address);

/* sim_operation_end - what the calling thread's operation on the stream uses is in use until
 * `time`: it must not be freed before */
void sim_operation_end(cudaStream_t stream, double time);
#endif

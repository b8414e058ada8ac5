#ifndef RUNTIME_CUDA_NCCL_LIBRARY_H
#define RUNTIME_CUDA_NCCL_LIBRARY_H
/* nccl_library.h - NCCL, loaded when it is first needed, so that a machine without it lacks direct
 * collectives and nothing else. */

/* nccl_available - load it. returns: NULL, or why it cannot be used */
const char *nccl_available(void);

/* nccl_version - 22105 is 2.21.5; 0 if it cannot be used */
int nccl_version(void);

#if __has_include(<nccl.h>)
#define HAVE_NCCL
#include <nccl.h>

#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclGetVersion)                                                                              \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommAbort)                                                                               \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclAllReduce)                                                                               \
    X(ncclReduceScatter)                                                                           \
    X(ncclAllGather)                                                                               \
    X(ncclBroadcast)                                                                               \
    X(ncclSend)                                                                                    \
    X(ncclRecv)

/* Its functions, by their own names. */
extern struct nccl {
#define X(function) __typeof__(function) *function;
    NCCL_FUNCTIONS(X)
#undef X
} nccl;
#endif
#endif

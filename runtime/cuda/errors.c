#include <string.h>

#include "runtime/cuda/cuda.h"
#include "runtime/error.h"

/* The function's name, without arguments. */
static int name_length(const char *call)
{
    return (int)strcspn(call, "(");
}

int cuda_check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return 0;
    (void)cudaGetLastError(); /* else the next launch is blamed for it */
    const struct error_type *type =
        error == cudaErrorMemoryAllocation ? &MemoryError : &RuntimeError;
    error_set(type, __FILE__, __LINE__, "%s: %s (%.*s)", cudaGetErrorName(error),
              cudaGetErrorString(error), name_length(call), call);
    return -1;
}

int cublas_check(cublasStatus_t status, const char *call)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    const struct error_type *type =
        status == CUBLAS_STATUS_ALLOC_FAILED ? &MemoryError : &RuntimeError;
    error_set(type, __FILE__, __LINE__, "%s: %s (%.*s)", cublasGetStatusName(status),
              cublasGetStatusString(status), name_length(call), call);
    return -1;
}

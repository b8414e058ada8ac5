/* sim_error.c - errors of the simulated runtime. The text of cudaGetErrorString says what happened
 * where a GPU's can only say that something did. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/sim/sim_internal.h"

enum { TEXT_BYTES = 400 };

/* What the calling thread's last failure was about. */
static _Thread_local struct {
    cudaError_t last; /* for cudaGetLastError */
    cudaError_t about;
    char text[TEXT_BYTES];
} failure;

/* The first illegal address. Written once, before `broken` is set. */
static atomic_bool broken, being_broken;
static char broken_text[TEXT_BYTES];

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};
enum { ERRORS = sizeof errors / sizeof errors[0] };

cudaError_t sim_fail(cudaError_t error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure.text, sizeof failure.text, format, arguments);
    va_end(arguments);
    failure.about = failure.last = error;
    return error;
}

cudaError_t sim_fail_for_good(const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!atomic_exchange(&being_broken, true)) {
        snprintf(broken_text, sizeof broken_text, "%s", text);
        atomic_store(&broken, true);
    }
    fprintf(stderr, "simulated GPU: %s\n", text);
    return failure.last = cudaErrorIllegalAddress;
}

cudaError_t sim_entered(double seconds)
{
    sim_host_charge(seconds);
    if (!atomic_load(&broken))
        return cudaSuccess;
    return failure.last = cudaErrorIllegalAddress;
}

cudaError_t cudaPeekAtLastError(void)
{
    return atomic_load(&broken) ? cudaErrorIllegalAddress : failure.last;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t last = cudaPeekAtLastError();
    failure.last = cudaSuccess;
    return last;
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    if (error == cudaErrorIllegalAddress && atomic_load(&broken))
        return broken_text;
    if (error != cudaSuccess && error == failure.about)
        return failure.text;
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unrecognized error code";
}

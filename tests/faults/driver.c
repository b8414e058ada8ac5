/* driver.c - a libcuda.so.1 whose cuInit fails, with the code in DRIVER_ERROR. It names one error.
 */
#include <stdlib.h>

int cuInit(unsigned flags);
int cuGetErrorName(int error, const char **name);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int index);
int cuDeviceGetName(char *name, int length, int device);
int cuDriverGetVersion(int *version);

enum { UNKNOWN = 999, INVALID_VALUE = 1 };

int cuInit(unsigned flags)
{
    const char *code = getenv("DRIVER_ERROR");
    return code && flags == 0 ? atoi(code) : INVALID_VALUE;
}

int cuGetErrorName(int error, const char **name)
{
    *name = error == UNKNOWN ? "CUDA_ERROR_UNKNOWN" : NULL;
    return *name ? 0 : INVALID_VALUE;
}

int cuDeviceGetCount(int *count)
{
    (void)count;
    return INVALID_VALUE;
}

int cuDeviceGet(int *device, int index)
{
    (void)device;
    (void)index;
    return INVALID_VALUE;
}

int cuDeviceGetName(char *name, int length, int device)
{
    (void)name;
    (void)length;
    (void)device;
    return INVALID_VALUE;
}

int cuDriverGetVersion(int *version)
{
    (void)version;
    return INVALID_VALUE;
}

#include "grading/gpus.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/fault.h"
#include "grading/home.h"
#include "grading/probe.h"
#include "runtime/error.h"
#include "runtime/plugin.h"

enum { PROBE_MS = 30 * 1000, GPUS_NEEDED = 2 };

/* The calls of the driver that are needed. They are its stable interface: no header of CUDA is
 * wanted for them. source: CUDA driver API */
struct driver {
    int (*init)(unsigned flags);
    int (*error_name)(int error, const char **name);
    int (*count)(int *count);
    int (*get)(int *device, int index);
    int (*name)(char *name, int length, int device);
    int (*version)(int *version);
};

static bool driver_open(struct driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    driver->init = (__typeof__(driver->init))dlsym(library, "cuInit");
    driver->error_name = (__typeof__(driver->error_name))dlsym(library, "cuGetErrorName");
    driver->count = (__typeof__(driver->count))dlsym(library, "cuDeviceGetCount");
    driver->get = (__typeof__(driver->get))dlsym(library, "cuDeviceGet");
    driver->name = (__typeof__(driver->name))dlsym(library, "cuDeviceGetName");
    driver->version = (__typeof__(driver->version))dlsym(library, "cuDriverGetVersion");
    return driver->init && driver->error_name && driver->count && driver->get && driver->name &&
           driver->version;
}

static void explain(struct gpus *gpus, const struct driver *driver, int code)
{
    enum { NO_DEVICE = 100 };
    const char *name;
    if (code == NO_DEVICE)
        snprintf(gpus->reason, sizeof gpus->reason, "no GPU is visible to the CUDA driver");
    else if (driver->error_name(code, &name) == 0)
        snprintf(gpus->reason, sizeof gpus->reason, "the CUDA driver gives %s", name);
    else
        snprintf(gpus->reason, sizeof gpus->reason, "the CUDA driver gives error %d", code);
}

static void ask_driver(struct gpus *gpus)
{
    struct driver driver;
    int code, count = 0, device;
    if (!driver_open(&driver)) {
        snprintf(gpus->reason, sizeof gpus->reason, "libcuda.so.1 not found");
        return;
    }
    if ((code = driver.init(0)) != 0 || (code = driver.count(&count)) != 0) {
        explain(gpus, &driver, code);
        return;
    }
    for (int i = 0; i < count && i < GPUS_MAX; i++) {
        if (driver.get(&device, i) == 0 &&
            driver.name(gpus->names[gpus->count], GPU_NAME_BYTES, device) == 0)
            gpus->count++;
    }
    driver.version(&gpus->driver);
}

/* Loading it does not touch a GPU. */
static void ask_device(struct gpus *gpus)
{
    char *path = format_or_fault("%s/" BUILD_FOLDER "/cuda.so", home_find());
    if (access(path, R_OK) < 0) {
        snprintf(gpus->no_device, sizeof gpus->no_device,
                 "this build of grade has no CUDA device: make found no CUDA toolkit");
        return;
    }
    if (plugin_load(path) < 0) {
        snprintf(gpus->no_device, sizeof gpus->no_device, "%s", error_message(error_pending()));
        return;
    }
    const struct dist_backend *nccl = plugin_current()->collectives;
    const char *missing = nccl->available();
    gpus->toolkit = plugin_current()->toolkit;
    snprintf(gpus->no_nccl, sizeof gpus->no_nccl, "%s", missing ? missing : "");
    gpus->nccl = missing ? 0 : nccl->version();
}

static void answer(void)
{
    struct gpus gpus = {0};
    ask_driver(&gpus);
    if (gpus.count > 0) /* its libraries are large */
        ask_device(&gpus);
    if (write(1, &gpus, sizeof gpus) != sizeof gpus)
        _exit(1);
}

void gpus_probe(struct gpus *gpus)
{
    if (probe(answer, gpus, sizeof *gpus, PROBE_MS) == sizeof *gpus)
        return;
    *gpus = (struct gpus){0};
    snprintf(gpus->reason, sizeof gpus->reason, "the CUDA driver does not answer");
}

void gpus_simulate(struct gpus *gpus, const char *profile)
{
    *gpus = (struct gpus){.count = GPUS_NEEDED, .simulated = true};
    for (int i = 0; i < gpus->count; i++)
        snprintf(gpus->names[i], GPU_NAME_BYTES, "simulated V100 (%s)", profile);
}

/* two_v100s - the two GPUs that are used are the ones that the thresholds were calibrated for */
static bool two_v100s(const struct gpus *gpus)
{
    return strstr(gpus->names[0], "V100") && strstr(gpus->names[1], "V100");
}

static char *block_on_any(const struct gpus *gpus)
{
    if (gpus->reason[0])
        return format_or_fault("needs two GPUs: %s", gpus->reason);
    if (gpus->count < GPUS_NEEDED)
        return format_or_fault("needs two GPUs: %d found%s%s", gpus->count, gpus->count ? ", " : "",
                               gpus->names[0]);
    return gpus->no_device[0] ? format_or_fault("%s", gpus->no_device) : NULL;
}

/* needs_nccl - the ranks' speedup: by the host, as all else that ranks do can be, there is none */
static bool needs_nccl(const struct criterion *criterion)
{
    return criterion->speedup && criterion->worlds[0] > 1;
}

static char *block_on_cuda(const struct gpus *gpus, const struct criterion *criterion)
{
    char *reason = block_on_any(gpus);
    if (reason)
        return reason;
    if (criterion->needs == NEEDS_TWO_V100S && !two_v100s(gpus))
        return format_or_fault("needs two V100 GPUs: found %s and %s", gpus->names[0],
                               gpus->names[1]);
    if (needs_nccl(criterion) && gpus->no_nccl[0])
        return format_or_fault("needs NCCL: %s", gpus->no_nccl);
    return NULL;
}

char *gpus_block(const struct gpus *gpus, const char *device, const struct criterion *criterion)
{
    if (strcmp(device, "cuda") == 0)
        return block_on_cuda(gpus, criterion);
    if (strcmp(device, "sim") == 0)
        return NULL;
    if (criterion->needs == NEEDS_NOTHING)
        return NULL;
    return format_or_fault("needs two %sGPUs; this run is on the CPU",
                           criterion->needs == NEEDS_TWO_V100S ? "V100 " : "");
}

bool gpus_measurable(const struct gpus *gpus, const char *device, const struct criterion *criterion)
{
    char *reason = block_on_any(gpus);
    free(reason);
    return strcmp(device, "cuda") == 0 && criterion->speedup && !reason && !two_v100s(gpus);
}

bool gpus_usable(const struct gpus *gpus)
{
    return !gpus->no_device[0] && gpus->count >= GPUS_NEEDED;
}

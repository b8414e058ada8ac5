#include "runtime/cuda/nccl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#ifdef HAVE_NCCL

static char missing[200]; /* why it cannot be used; "" if it can */
struct nccl nccl;

#ifdef SIMULATED

static void load(void)
{
#define X(function) nccl.function = function;
    NCCL_FUNCTIONS(X)
#undef X
}

#else

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        snprintf(missing, sizeof missing, "libnccl.so.2 has no %s", name);
    return symbol;
}

static void load(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(missing, sizeof missing, "%s", dlerror());
        return;
    }
#define X(function)                                                                                \
    if (!(nccl.function = (__typeof__(nccl.function))find(library, #function)))                    \
        return;
    NCCL_FUNCTIONS(X)
#undef X
}

#endif

const char *nccl_available(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return missing[0] ? missing : NULL;
}

int nccl_version(void)
{
    int version = 0;
    if (!nccl_available() && nccl.ncclGetVersion(&version) != ncclSuccess)
        version = 0;
    return version;
}

#else

const char *nccl_available(void)
{
    return "this build was made without nccl.h";
}

int nccl_version(void)
{
    return 0;
}

#endif

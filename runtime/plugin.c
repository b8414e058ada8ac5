#include "runtime/plugin.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "runtime/error.h"

typedef const struct device_plugin *entry_fn(void);

static _Atomic(const struct device_plugin *) current;

int plugin_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    entry_fn *entry = library ? (entry_fn *)dlsym(library, "device_plugin") : NULL;
    if (!entry)
        return raise_error(RuntimeError, "the device cannot be loaded: %s", dlerror());
    const struct device_plugin *plugin = entry(), *none = NULL;
    if (!atomic_compare_exchange_strong(&current, &none, plugin))
        return raise_error(RuntimeError, "the device %s is loaded already", none->name);
    device_register(DEVICE_CUDA, plugin->table);
    return 0;
}

const struct device_plugin *plugin_current(void)
{
    return atomic_load(&current);
}

#include "runtime/device_internal.h"

#include <stdatomic.h>

#include "runtime/error.h"

enum { KINDS = DEVICE_CUDA + 1, NAMED = 16 };

static _Atomic(const struct device_table *) tables[KINDS] = {[DEVICE_CPU] = &cpu_device};

void device_register(enum device_kind kind, const struct device_table *table)
{
    atomic_store(&tables[kind], table);
}

const struct device_table *device_table_of(struct device device)
{
    const struct device_table *table = (unsigned)device.kind < KINDS ? tables[device.kind] : NULL;
    if (table && device.index >= 0 && device.index < table->count())
        return table;
    return raise_null(RuntimeError, "there is no device %s here", device_name(device));
}

bool device_equal(struct device a, struct device b)
{
    return a.kind == b.kind && a.index == b.index;
}

const char *device_name(struct device device)
{
    static const char cuda[NAMED][8] = {
        "cuda:0", "cuda:1", "cuda:2",  "cuda:3",  "cuda:4",  "cuda:5",  "cuda:6",  "cuda:7",
        "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14", "cuda:15",
    };
    if (device.kind == DEVICE_CPU)
        return device.index == 0 ? "cpu" : "cpu:?";
    return device.index >= 0 && device.index < NAMED ? cuda[device.index] : "cuda:?";
}

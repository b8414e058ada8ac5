#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H
/* device.h - tests on devices: simulated ones, or what the environment's TEST_PLUGIN names
 * (build/release/cuda.so for real ones). */
#include <check.h>
#include <stdlib.h>

#include "runtime/device_internal.h"
#include "runtime/error.h"
#include "runtime/plugin.h"

/* Before each test, in its own process: CUDA must not be touched before a fork. */
static inline void device_load(void)
{
    const char *plugin = getenv("TEST_PLUGIN");
    int status = plugin_load(plugin ? plugin : BUILD_FOLDER "/sim.so");
    ck_assert_msg(status == 0, "%s", status ? error_message(error_pending()) : "");
}

static inline int device_count(void)
{
    return plugin_current()->table->count();
}

/* The first device, and another one where there is one. */
#define FIRST_DEVICE CUDA(0)
#define LAST_DEVICE CUDA(device_count() - 1)
#endif

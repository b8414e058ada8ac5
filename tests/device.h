#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H
/* device.h - tests on devices: simulated ones, or what the environment's TEST_PLUGIN names
 * (build/release/cuda.so for real ones). */
#include <check.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/device_internal.h"
#include "runtime/error.h"
#include "runtime/plugin.h"

static inline int device_count(void)
{
    return plugin_current()->table->count();
}

/* Before each test, in its own process: CUDA must not be touched before a fork. (With CK_FORK=no
 * there is one process.) */
static inline void device_load(void)
{
    error_clear();
    if (plugin_current())
        return;
    const char *plugin = getenv("TEST_PLUGIN");
    int status = plugin_load(plugin ? plugin : BUILD_FOLDER "/sim.so");
    ck_assert_msg(status == 0, "%s", status ? error_message(error_pending()) : "");
    ck_assert_msg(device_count() > 0, "%s has no device here", plugin_current()->name);
}

/* devices_here - for a test that forks and so must not touch CUDA itself */
static inline int devices_here(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        device_load();
        _exit(device_count());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* The first device, and another one where there is one. */
#define FIRST_DEVICE CUDA(0)
#define LAST_DEVICE CUDA(device_count() - 1)
#endif

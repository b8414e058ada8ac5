#include "runtime/clock.h"

#include <time.h>

#include "runtime/plugin.h"

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool clock_is_virtual(void)
{
    const struct device_plugin *plugin = plugin_current();
    return plugin && plugin->clock;
}

double clock_now(void)
{
    return clock_is_virtual() ? plugin_current()->clock() : 0;
}

void clock_wait(double time)
{
    if (clock_is_virtual())
        plugin_current()->clock_wait(time);
}

void clock_exchange(double latest, double bytes)
{
    if (!clock_is_virtual())
        return;
    clock_wait(latest);
    clock_wait(clock_now() + plugin_current()->network_seconds(bytes));
}

void clock_copy(size_t bytes)
{
    if (clock_is_virtual())
        clock_wait(clock_now() + plugin_current()->copy_seconds((double)bytes));
}

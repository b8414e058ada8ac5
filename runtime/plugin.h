#ifndef RUNTIME_PLUGIN_H
#define RUNTIME_PLUGIN_H
/* plugin.h - devices that are loaded on demand: cuda.so, and sim.so in its place. */
#include "runtime/device_internal.h"

struct group;
struct call;

enum { DIST_ID_BYTES = 128, DIST_IDENTITY_BYTES = 128 };

/* How the ranks of a group exchange the memory of devices. A fence is a point in a device's work:
 * of what was asked of it so far, and then the end of a collective that began there. */
struct dist_backend {
    /* available - whether its library is here. returns: NULL, or what is missing
     * version - of that library, as it numbers them; 0 if there is none */
    const char *(*available)(void);
    int (*version)(void);

    /* identify - text that the same device alone has, whoever asks. errors: -1 */
    int (*identify)(int device, char text[DIST_IDENTITY_BYTES]);

    /* new_id - what one rank makes, and all connect with. errors: -1
     * connect - every rank of the group, at the same time. errors: NULL
     * close - once the last collective has ended or was aborted; not with the other ranks */
    int (*new_id)(char id[DIST_ID_BYTES]);
    void *(*connect)(struct group *group, int device, const char id[DIST_ID_BYTES]);
    void (*close)(void *connection);

    /* run - start the call, after its fence, which becomes that of its end. errors: -1 */
    int (*run)(void *connection, const struct call *call);

    /* fence - of what was asked of the device so far. errors: NULL
     * join - what is asked of the device from now on waits for the fence; frees it. errors: -1 */
    void *(*fence)(int device);
    int (*join)(int device, void *fence);
};

struct device_plugin {
    const char *name; /* "cuda", "sim" */
    int toolkit;      /* what it was built with, as CUDA numbers it: 12040 */
    const struct device_table *table;
    const struct dist_backend *collectives;

    /* Of a device whose time is virtual; NULL otherwise.
     * clock - the calling thread's time, in seconds; clock_wait - advance it to `time` at least
     * network_seconds - what sending so many bytes from process to process takes
     * copy_seconds - what copying so many within the host's memory does
     * set_scale - charge for everything as if its dimensions were so many times as long */
    double (*clock)(void);
    void (*clock_wait)(double time);
    double (*network_seconds)(double bytes);
    double (*copy_seconds)(double bytes);
    void (*set_scale)(int scale);
};

/* plugin_load - load the plugin from a file and register it for DEVICE_CUDA; before the first use
 * of such a device, and once in a process. errors: -1, with RuntimeError */
int plugin_load(const char *path);

/* plugin_current - what was loaded, or NULL */
const struct device_plugin *plugin_current(void);
#endif

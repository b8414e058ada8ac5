#ifndef SIM_MODEL_H
#define SIM_MODEL_H
/* sim_model.h - how long things take on the simulated pair of V100s, in seconds.
 *
 * Every size is scaled (sim_set_scale in sim_kernel.h) before it is charged. The constants and
 * where they come from stand in sim_model.c; docs/simulation.md says what the model leaves out. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a host thread pays for a call. */
struct sim_host_costs {
    double launch;      /* a kernel, copy or collective */
    double synchronize; /* returning from a wait, beyond the wait itself */
    double call;        /* everything else: events, allocation */
};

struct sim_gpu {
    const char *name;
    int major, minor, multiprocessors;
    size_t memory_bytes;
};

extern const struct sim_host_costs sim_host_costs;
extern const struct sim_gpu sim_gpu;

/* sim_profile_check - whether SIM_PROFILE names a profile: NULL, or what is wrong with it */
const char *sim_profile_check(void);

/* sim_has_peer_access - whether the pair of this profile can reach each other's memory */
bool sim_has_peer_access(void);

/* sim_kernel_seconds - of a kernel that moves `bytes` */
double sim_kernel_seconds(double bytes);

/* sim_gemm_seconds - of an (m, k) (k, n) product of elements of 4 or 8 bytes */
double sim_gemm_seconds(int64_t m, int64_t n, int64_t k, size_t element);

/* sim_device_copy_seconds - within a device's memory
 * sim_host_copy_seconds - between host and device
 * sim_peer_copy_seconds - from one device to the other; direct: peer access is enabled */
double sim_device_copy_seconds(size_t bytes);
double sim_host_copy_seconds(size_t bytes);
double sim_peer_copy_seconds(size_t bytes, bool direct);

/* sim_collective_seconds - of a collective or message in which the busiest rank sends `bytes` */
double sim_collective_seconds(double bytes);
#endif

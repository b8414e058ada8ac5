#ifndef GRADING_GPUS_H
#define GRADING_GPUS_H
/* gpus.h - which GPUs this machine has, and which criteria must be blocked without them. */
#include <stdbool.h>

#include "criteria/criterion.h"

enum { GPUS_MAX = 16, GPU_NAME_BYTES = 96 };

struct gpus {
    int count;
    char names[GPUS_MAX][GPU_NAME_BYTES];
    bool simulated;
    char reason[160];    /* why there are none: "libcuda.so.1 not found"; "" otherwise */
    char no_device[200]; /* why grade cannot use them; "" otherwise */
    char no_nccl[200];   /* why they cannot communicate directly; "" otherwise */

    /* Versions as they number them, of the driver, of what grade's CUDA device was built with, and
     * of NCCL: 12040, 22105; 0 for what there is not. */
    int driver, toolkit, nccl;
};

/* gpus_probe - ask the CUDA driver and grade's CUDA device, in a short-lived process: the caller's
 * own never touches them
 * errors: none; what goes wrong is the reason why there are no GPUs */
void gpus_probe(struct gpus *gpus);

/* gpus_simulate - two V100s that the simulated device stands for
 * profile: "v100-nvlink" or "v100-pcie" */
void gpus_simulate(struct gpus *gpus, const char *profile);

/* gpus_block - why a criterion cannot run on the device, or NULL if it can
 * device: "cpu", "cuda" or "sim". owns: the caller */
char *gpus_block(const struct gpus *gpus, const char *device, const struct criterion *criterion);

/* gpus_measurable - a speedup that is blocked only because these GPUs are no V100s, and that can be
 * timed on them all the same */
bool gpus_measurable(const struct gpus *gpus, const char *device,
                     const struct criterion *criterion);

/* gpus_usable - whether "auto" means cuda: the device can be used, and there are two GPUs */
bool gpus_usable(const struct gpus *gpus);
#endif

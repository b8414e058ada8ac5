#ifndef GRADING_GPUS_H
#define GRADING_GPUS_H
/* gpus.h - which GPUs this machine has, and which criteria must be blocked without them. */
#include <stdbool.h>

#include "criteria/criterion.h"

enum { GPUS_MAX = 16, GPU_NAME_BYTES = 96 };

struct gpus {
    int count;
    char names[GPUS_MAX][GPU_NAME_BYTES];
    char reason[160]; /* why there are none: "libcuda.so.1 not found"; "" otherwise */
};

/* gpus_probe - ask the CUDA driver, in a short-lived process: the caller's own never touches it
 * errors: none; what goes wrong is the reason why there are no GPUs */
void gpus_probe(struct gpus *gpus);

/* gpus_block - why a criterion cannot run on the device, or NULL if it can
 * device: "cpu" or "cuda". owns: the caller */
char *gpus_block(const struct gpus *gpus, const char *device, const struct criterion *criterion);

/* gpus_usable - whether "auto" means cuda: this build has the device, and there are two GPUs */
bool gpus_usable(const struct gpus *gpus);
#endif

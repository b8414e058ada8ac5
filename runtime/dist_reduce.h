#ifndef RUNTIME_DIST_REDUCE_H
#define RUNTIME_DIST_REDUCE_H
/* dist_reduce.h - the arithmetic of collectives. */
#include "runtime/dist.h"

/* reduce_values - output[i] = sources[0][i] op sources[1][i] op ..., from left to right, so that
 * the result is the same to the bit wherever it is computed. FLOAT16 is computed in FLOAT32 and
 * rounded once. A NaN anywhere gives NaN, for MIN and MAX too. shapes: n sources of `count`
 * elements; output may be one of them. op: SUM, MIN or MAX */
void reduce_values(void *output, const void *const *sources, int n, int64_t count, enum dtype dtype,
                   enum dist_op op);
#endif

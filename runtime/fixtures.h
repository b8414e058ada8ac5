#ifndef RUNTIME_FIXTURES_H
#define RUNTIME_FIXTURES_H
/* fixtures.h - the assignment's public models and data, the same numbers as the Python edition's
 * (which PyTorch drew with seed 123 for the model and 987 for the batches). */
#include "runtime/nn.h"

/* small_model - Linear(4, 8), Tanh, Linear(8, 2) in FLOAT32 on the CPU */
struct module *small_model(void);

/* small_model_lora - the same with LoRALinear (rank 2, alpha 4) on "0" and "2", A as published */
struct module *small_model_lora(void);

enum { BATCH_COUNT = 3, BATCH_ROWS = 8 };

/* batch_inputs, batch_targets - batch 0, 1 or 2: (8, 4) and (8, 2). errors: ValueError */
struct tensor *batch_inputs(int index);
struct tensor *batch_targets(int index);

/* residual_mlp - Sequential of `blocks` ResidualBlocks of a width: the performance workload */
struct module *residual_mlp(int blocks, int64_t width, struct device device, struct rng *rng);
#endif

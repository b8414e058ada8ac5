#ifndef TESTS_MODULES_H
#define TESTS_MODULES_H
/* modules.h - small modules, drawn by one generator. */
#include "runtime/nn.h"
#include "runtime/ops.h"

static struct rng rng;

/* seed - a fixture: every test draws the same */
static inline void seed(void)
{
    rng_seed(&rng, 5);
}

static inline struct module *linear(int64_t in, int64_t out)
{
    return linear_new(in, out, FLOAT64, CPU, &rng);
}

static inline struct module *nested(void)
{
    struct module *inner = sequential_new(MODULES(linear(4, 6), gelu_new()));
    return sequential_new(MODULES(inner, linear(6, 2)));
}

/* shared - a layer that occurs twice, and a weight of two layers */
static inline struct module *shared(void)
{
    struct module *first = linear(3, 3);
    struct module *tied =
        linear_from(module_parameter(first, "weight"), tensor_zeros(SHAPE(3), FLOAT64, CPU));
    struct module *inner = sequential_new(MODULES(first, tanh_new()));
    struct module *block = residual_block_new(3, FLOAT64, CPU, &rng);
    return sequential_new(MODULES(inner, first, block, tied));
}
#endif

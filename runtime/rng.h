#ifndef RUNTIME_RNG_H
#define RUNTIME_RNG_H
/* rng.h - random numbers whose state belongs to whoever declares it:
 *
 *     struct rng rng;
 *     rng_seed(&rng, 1234);
 *     rng_shuffle(&rng, order, n);
 *
 * The generator is CPython's (Mersenne Twister, seeded as random.Random(seed) is), so that a
 * shuffle gives CPython's permutation exactly. Not safe to share between threads. */
#include <stdint.h>

#include "runtime/tensor.h"

struct rng {
    uint32_t state[624];
    int next;
};

/* rng_seed - start anew. source: random.Random(seed), seed >= 0 */
void rng_seed(struct rng *rng, uint64_t seed);

/* rng_default - the process-wide generator, shared, seeded with 0 at start */
struct rng *rng_default(void);

/* rng_bits - 1 to 64 random bits. source: random.getrandbits */
uint64_t rng_bits(struct rng *rng, int bits);

/* rng_below - uniform in 0 .. n-1. errors: 0, with ValueError if n is 0
 * source: random.randrange(n) */
uint64_t rng_below(struct rng *rng, uint64_t n);

/* rng_double - uniform in [0, 1) with 53 bits. source: random.random */
double rng_double(struct rng *rng);

/* rng_gauss - standard normal (polar method, no state kept between calls) */
double rng_gauss(struct rng *rng);

/* rng_shuffle - permute values[0..n-1] in place. source: random.shuffle, same permutation */
void rng_shuffle(struct rng *rng, int64_t *values, int64_t n);

/* tensor_uniform_, tensor_normal_ - fill x, in row-major order; returns x, NULL passes through
 * source: torch.Tensor.uniform_, normal_ (other numbers than PyTorch's for the same seed) */
struct tensor *tensor_uniform_(struct tensor *x, double low, double high, struct rng *rng);
struct tensor *tensor_normal_(struct tensor *x, double mean, double std, struct rng *rng);
#endif

#include "runtime/rng.h"

#include <math.h>
#include <pthread.h>

#include "runtime/error.h"
#include "runtime/ops.h"

/* MT19937 (Matsumoto and Nishimura, 1998), as in CPython's Modules/_randommodule.c. */
enum { WORDS = 624, SHIFT = 397 };

static void seed_with_word(struct rng *rng, uint32_t word)
{
    rng->state[0] = word;
    for (uint32_t i = 1; i < WORDS; i++)
        rng->state[i] = 1812433253u * (rng->state[i - 1] ^ (rng->state[i - 1] >> 30)) + i;
    rng->next = WORDS;
}

/* init_by_array mixes each word with its predecessor; word 0's is the last, copied there on wrap.
 */
static uint32_t mixed(struct rng *rng, int i, uint32_t factor)
{
    uint32_t former = rng->state[i - 1];
    return rng->state[i] ^ ((former ^ (former >> 30)) * factor);
}

static int following(struct rng *rng, int i)
{
    if (i + 1 < WORDS)
        return i + 1;
    rng->state[0] = rng->state[WORDS - 1];
    return 1;
}

void rng_seed(struct rng *rng, uint64_t seed)
{
    const uint32_t key[] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t words = key[1] ? 2 : 1; /* as many as CPython's integer has, and at least one */
    seed_with_word(rng, 19650218u);
    int i = 1;
    for (int k = 0; k < WORDS; k++, i = following(rng, i))
        rng->state[i] = mixed(rng, i, 1664525u) + key[(uint32_t)k % words] + (uint32_t)k % words;
    for (int k = 1; k < WORDS; k++, i = following(rng, i))
        rng->state[i] = mixed(rng, i, 1566083941u) - (uint32_t)i;
    rng->state[0] = 0x80000000u;
}

static struct rng shared;

static void seed_shared(void)
{
    rng_seed(&shared, 0);
}

struct rng *rng_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, seed_shared);
    return &shared;
}

static void twist(struct rng *rng)
{
    for (int i = 0; i < WORDS; i++) {
        uint32_t y = (rng->state[i] & 0x80000000u) | (rng->state[(i + 1) % WORDS] & 0x7fffffffu);
        rng->state[i] = rng->state[(i + SHIFT) % WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    rng->next = 0;
}

static uint32_t next_word(struct rng *rng)
{
    if (rng->next >= WORDS)
        twist(rng);
    uint32_t y = rng->state[rng->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

uint64_t rng_bits(struct rng *rng, int bits)
{
    if (bits <= 32)
        return next_word(rng) >> (32 - bits);
    uint64_t low = next_word(rng);
    return low | (uint64_t)(next_word(rng) >> (64 - bits)) << 32;
}

/* Rejection, with as many bits as n itself has (not n - 1): CPython's sequence depends on it. */
uint64_t rng_below(struct rng *rng, uint64_t n)
{
    if (n == 0) {
        (void)raise_error(ValueError, "rng_below: there is no number below 0");
        return 0;
    }
    const int bits = 64 - __builtin_clzll(n);
    uint64_t value = rng_bits(rng, bits);
    while (value >= n)
        value = rng_bits(rng, bits);
    return value;
}

double rng_double(struct rng *rng)
{
    uint32_t high = next_word(rng) >> 5, low = next_word(rng) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

double rng_gauss(struct rng *rng)
{
    double x, r;
    do {
        x = 2 * rng_double(rng) - 1;
        double y = 2 * rng_double(rng) - 1;
        r = x * x + y * y;
    } while (r >= 1 || r == 0);
    return x * sqrt(-2 * log(r) / r);
}

void rng_shuffle(struct rng *rng, int64_t *values, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)rng_below(rng, (uint64_t)i + 1);
        int64_t value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}

/* Drawn on the CPU in double precision, so that every device and dtype gets the same numbers. */
static struct tensor *fill(struct tensor *x, double (*draw)(struct rng *), double offset,
                           double factor, struct rng *rng)
{
    if (!x)
        return NULL;
    struct tensor *values = tensor_empty(tensor_ndim(x), tensor_shape(x), FLOAT64, CPU);
    if (!values)
        return NULL;
    double *at = tensor_data(values);
    for (int64_t i = 0; i < tensor_numel(x); i++)
        at[i] = offset + factor * draw(rng);
    return tensor_copy_(x, values);
}

struct tensor *tensor_uniform_(struct tensor *x, double low, double high, struct rng *rng)
{
    return fill(x, rng_double, low, high - low, rng);
}

struct tensor *tensor_normal_(struct tensor *x, double mean, double std, struct rng *rng)
{
    return fill(x, rng_gauss, mean, std, rng);
}

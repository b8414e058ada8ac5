/* fuzz_observations.c - the records that an untrusted process wrote */
#define _GNU_SOURCE
#include "grading/observations.h"
#include "runtime/error.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"
#include "tests/fuzz/fuzz.h"

/* Keys that the seeds use: every kind is looked up as every other. */
static const char *const keys[] = {"int",   "ints",   "number", "text",
                                   "error", "tensor", "absent", ""};
enum { KEYS = sizeof keys / sizeof keys[0] };

static uint64_t sum(const void *bytes, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += ((const unsigned char *)bytes)[i];
    return total;
}

static void read_tensor(const struct observations *o, const char *key)
{
    const struct tensor *tensor = observed_tensor(o, key);
    expect(observed_device(o, key).index >= 0);
    if (!tensor)
        return;
    expect(tensor_is_contiguous(tensor) && tensor_ndim(tensor) <= TENSOR_MAX_DIMS);
    size_t size = (size_t)dtype_size(tensor_dtype(tensor));
    sum(tensor_data(tensor), (size_t)tensor_numel(tensor) * size);
}

static void read_all(const struct observations *o, const char *key)
{
    const char *text = observed_text(o, key), *type, *message;
    int64_t count;
    const int64_t *ints = observed_ints(o, key, &count);
    if (ints)
        sum(ints, (size_t)count * sizeof *ints);
    if (text)
        sum(text, strlen(text));
    if (observed_error(o, key, &type, &message))
        sum(type, strlen(type) + (*message != '\0'));
    observed_int(o, key, 0);
    observed_number(o, key, 0);
    observed_requires_grad(o, key);
    read_tensor(o, key);
}

FUZZ_TARGET(observations)
{
    SCOPE;
    struct observations *o = observations_decode(bytes, n, 1, 2);
    for (int i = 0; o && i < KEYS; i++)
        read_all(o, keys[i]);
    if (o && observations_failure(o))
        expect_clean(observations_failure(o));
    if (o && observations_complete(o))
        expect(n > 0);
    expect(!error_occurred());
    observations_free(o);
    return 0;
}

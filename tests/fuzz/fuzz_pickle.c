/* fuzz_pickle.c - data.pkl alone, without the container whose checksums keep mutations out */
#define _GNU_SOURCE
#include "runtime/error.h"
#include "runtime/pt_internal.h"
#include "runtime/scope.h"
#include "tests/fuzz/fuzz.h"

/* Every element that shape and strides reach lies in the storage. */
static void expect_inside(const struct pt_tensor *tensor)
{
    int64_t numel = 1, last = tensor->offset;
    expect(tensor->ndim >= 0 && tensor->ndim <= TENSOR_MAX_DIMS);
    for (int i = 0; i < tensor->ndim; i++) {
        expect(tensor->shape[i] >= 0);
        expect(!__builtin_mul_overflow(numel, tensor->shape[i], &numel));
    }
    expect(numel == tensor->numel);
    for (int i = 0; i < tensor->ndim && numel > 0; i++) {
        expect(tensor->strides[i] >= 0);
        last += (tensor->shape[i] - 1) * tensor->strides[i];
    }
    expect(numel == 0 || (tensor->offset >= 0 && last < tensor->storage_numel));
}

FUZZ_TARGET(pickle)
{
    SCOPE;
    struct pt_items *items = pt_unpickle(&(struct pt_entry){bytes, n});
    for (int64_t i = 0; items && i < items->n; i++) {
        expect(pt_text_check(items->at[i].name, strlen(items->at[i].name)) == 0);
        expect_inside(items->at[i].tensor);
    }
    expect(items ? !error_occurred() : error_is(&ValueError));
    error_clear();
    return 0;
}

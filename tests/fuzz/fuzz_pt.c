/* fuzz_pt.c - a whole .pt file: tensors, or ValueError */
#define _GNU_SOURCE
#include "runtime/error.h"
#include "runtime/pt_internal.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"
#include "tests/fuzz/fuzz.h"

static void expect_readable(const struct named_tensors *tensors)
{
    for (int i = 0; i < tensors->n; i++) {
        const struct tensor *tensor = tensors->at[i].tensor;
        size_t bytes = (size_t)tensor_numel(tensor) * (size_t)dtype_size(tensor_dtype(tensor));
        expect(strlen(tensors->at[i].name) <= PT_PICKLE_MAX_BYTES);
        char *copy = scope_alloc(bytes + 1);
        if (tensor_is_contiguous(tensor) && bytes > 0)
            memcpy(copy, tensor_data(tensor), bytes);
    }
}

FUZZ_TARGET(pt)
{
    SCOPE;
    struct named_tensors *tensors = tensors_parse(bytes, n);
    if (tensors)
        expect_readable(tensors);
    expect(tensors ? !error_occurred() : error_is(&ValueError));
    error_clear();
    return 0;
}

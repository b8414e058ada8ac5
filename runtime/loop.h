#ifndef RUNTIME_LOOP_H
#define RUNTIME_LOOP_H
/* loop.h - several tensors of one shape, walked together; for CUDA's kernels too. */
#include "runtime/tensor.h"

enum { LOOP_OPERANDS = 3 };

struct loop_operand {
    char *data;
    enum dtype dtype;
    int64_t strides[TENSOR_MAX_DIMS]; /* in elements */
};

struct loop {
    int operands, ndim; /* at least 1 dimension */
    int64_t shape[TENSOR_MAX_DIMS];
    struct loop_operand operand[LOOP_OPERANDS];
};

/* loop_init - over n tensors of equal shape; dimensions that can be walked as one are merged */
struct loop loop_init(int n, const struct tensor *const *tensors);
#endif

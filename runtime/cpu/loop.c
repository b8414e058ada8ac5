#include "runtime/cpu/cpu.h"

/* Can dimension d be walked as one with the last one kept so far? */
static bool merges(const struct loop *loop, int n, const struct tensor *const *tensors, int d)
{
    int last = loop->ndim - 1;
    for (int i = 0; i < n; i++)
        if (loop->operand[i].strides[last] != tensors[i]->strides[d] * tensors[i]->shape[d])
            return false;
    return true;
}

struct loop loop_init(int n, const struct tensor *const *tensors)
{
    struct loop loop = {.operands = n};
    for (int d = 0; d < tensors[0]->ndim; d++) {
        int64_t size = tensors[0]->shape[d];
        if (size == 1)
            continue;
        bool merged = loop.ndim > 0 && merges(&loop, n, tensors, d);
        int to = merged ? loop.ndim - 1 : loop.ndim++;
        loop.shape[to] = merged ? loop.shape[to] * size : size;
        for (int i = 0; i < n; i++)
            loop.operand[i].strides[to] = tensors[i]->strides[d];
    }
    if (loop.ndim == 0) {
        loop.ndim = 1;
        loop.shape[0] = 1;
        for (int i = 0; i < n; i++)
            loop.operand[i].strides[0] = 1;
    }
    for (int i = 0; i < n; i++) {
        loop.operand[i].data = tensors[i]->data;
        loop.operand[i].dtype = tensors[i]->dtype;
    }
    return loop;
}

/* Step to the next row, as an odometer does; false after the last. */
static bool advance(const struct loop *loop, int64_t *position, char **data)
{
    for (int d = loop->ndim - 2; d >= 0; d--) {
        bool turns = ++position[d] == loop->shape[d];
        int64_t steps = turns ? 1 - loop->shape[d] : 1;
        for (int i = 0; i < loop->operands; i++)
            data[i] += steps * loop->operand[i].strides[d] * dtype_size(loop->operand[i].dtype);
        if (!turns)
            return true;
        position[d] = 0;
    }
    return false;
}

void loop_run(const struct loop *loop, loop_body *body, void *context)
{
    int64_t position[TENSOR_MAX_DIMS] = {0};
    char *data[LOOP_OPERANDS];
    for (int d = 0; d < loop->ndim; d++)
        if (loop->shape[d] == 0)
            return;
    for (int i = 0; i < loop->operands; i++)
        data[i] = loop->operand[i].data;
    do
        body(context, loop, loop->shape[loop->ndim - 1], data);
    while (advance(loop, position, data));
}

#ifndef RUNTIME_CUDA_PLACE_H
#define RUNTIME_CUDA_PLACE_H
/* place.h - from an element's number to where the operands of a loop have it, in a kernel. */
#include "runtime/cuda/kernel.h"
#include "runtime/half.h"
#include "runtime/loop.h"

struct place {
    int64_t offset[LOOP_OPERANDS]; /* in elements */
};

/* place_of - of element i in row-major order. Division of 64 bits is slow on a GPU: few tensors
 * need it. */
KERNEL_FUNCTION struct place place_of(const struct loop *loop, int64_t i)
{
    struct place place = {{0, 0, 0}};
    for (int d = loop->ndim - 1; d >= 0; d--) {
        int64_t size = loop->shape[d];
        int64_t rest = d == 0            ? 0
                       : i <= UINT32_MAX ? (int64_t)((uint32_t)i / (uint32_t)size)
                                         : i / size;
        int64_t position = i - rest * size;
        for (int o = 0; o < LOOP_OPERANDS; o++)
            place.offset[o] += position * loop->operand[o].strides[d];
        i = rest;
    }
    return place;
}

/* load_f32, load_f64 - an element of any dtype; store_f32, store_f64 */
#define LOAD_STORE(suffix, type)                                                                   \
    KERNEL_FUNCTION type load_##suffix(const struct loop_operand *operand, int64_t offset)         \
    {                                                                                              \
        switch (operand->dtype) {                                                                  \
        case FLOAT64:                                                                              \
            return (type)((const double *)operand->data)[offset];                                  \
        case FLOAT16:                                                                              \
            return (type)half_to_float(((const uint16_t *)operand->data)[offset]);                 \
        default:                                                                                   \
            return (type)((const float *)operand->data)[offset];                                   \
        }                                                                                          \
    }                                                                                              \
    KERNEL_FUNCTION void store_##suffix(const struct loop_operand *operand, int64_t offset,        \
                                        type value)                                                \
    {                                                                                              \
        switch (operand->dtype) {                                                                  \
        case FLOAT64:                                                                              \
            ((double *)operand->data)[offset] = (double)value;                                     \
            break;                                                                                 \
        case FLOAT16:                                                                              \
            ((uint16_t *)operand->data)[offset] = half_from_double((double)value);                 \
            break;                                                                                 \
        default:                                                                                   \
            ((float *)operand->data)[offset] = (float)value;                                       \
        }                                                                                          \
    }
LOAD_STORE(f32, float)
LOAD_STORE(f64, double)
#endif

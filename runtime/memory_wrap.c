/* memory_wrap.c - allocation in student code, with guards.
 *
 * A student's library is linked with --wrap for the functions below. Where memory is not guarded
 * they are the functions that they stand for. Memory that a library allocated for student code,
 * such as strdup's, is no block of ours, and is left to the C library. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory_internal.h"
#include "runtime/wrap_internal.h"

static void *allocate(size_t bytes, int fill)
{
    void *memory = memory_alloc(bytes, _Alignof(max_align_t), fill);
    if (!memory)
        errno = ENOMEM;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return memory_is_guarded() ? allocate(bytes, MEMORY_FRESH) : malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    size_t total;
    if (!memory_is_guarded() || __builtin_mul_overflow(n, bytes, &total))
        return calloc(n, bytes);
    return allocate(total, 0);
}

/* The block always moves: what still points to the old one shows. */
void *__wrap_realloc(void *memory, size_t bytes)
{
    size_t before;
    if (!memory)
        return __wrap_malloc(bytes);
    if (!memory_is_guarded() || !memory_size(memory, &before))
        return realloc(memory, bytes);
    void *moved = allocate(bytes, MEMORY_FRESH);
    if (moved) {
        memcpy(moved, memory, bytes < before ? bytes : before);
        memory_release(memory);
    }
    return moved;
}

void *__wrap_reallocarray(void *memory, size_t n, size_t bytes)
{
    size_t total;
    return __wrap_realloc(memory, __builtin_mul_overflow(n, bytes, &total) ? SIZE_MAX : total);
}

void __wrap_free(void *memory)
{
    memory_delete(memory);
}

/* NaN stays NaN whatever is computed of it. */
struct tensor *__wrap_tensor_empty(int ndim, const int64_t *shape, enum dtype dtype,
                                   struct device device)
{
    return memory_is_guarded() ? tensor_full(ndim, shape, NAN, dtype, device)
                               : tensor_empty(ndim, shape, dtype, device);
}

#include <stdlib.h>

#include "runtime/cpu/cpu.h"
#include "runtime/error.h"

enum { ALIGNMENT = 64 };

void *cpu_alloc(int index, size_t bytes)
{
    (void)index;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded);
    return memory ? memory
                  : raise_null(MemoryError, "out of memory: %zu bytes for a tensor", bytes);
}

void cpu_free(int index, void *memory, size_t bytes)
{
    (void)index;
    (void)bytes;
    free(memory);
}

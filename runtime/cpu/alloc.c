/* alloc.c - memory for CPU tensors, kept for reuse.
 *
 * Training asks for the same sizes again and again, and fresh pages cost more than most operations
 * on them. Blocks of at least SMALLEST bytes are rounded up to one of four sizes per power of two;
 * a freed one waits in its size's list for the next of that size, as long as the lists together
 * hold no more than CACHED_BYTES. Under AddressSanitizer, and where memory is guarded, nothing is
 * kept, so that errors are seen.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/built_with.h"
#include "runtime/cpu/cpu.h"
#include "runtime/error.h"
#include "runtime/memory_internal.h"

enum {
    ALIGNMENT = 64,
    SMALLEST_LOG2 = 13, /* below 8 KB, malloc is as quick */
    PER_DOUBLING = 4,
    CLASSES = (40 - SMALLEST_LOG2) * PER_DOUBLING,
    CACHED_BYTES = 128 << 20,
};

struct block {
    struct block *next;
};

static struct size_class {
    pthread_mutex_t lock;
    struct block *free;
} classes[CLASSES] = {[0 ... CLASSES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static _Atomic size_t cached_bytes;

/* The class of a size and, in *rounded, the size of its blocks; NULL for sizes that are not kept.
 */
static struct size_class *class_of(size_t bytes, size_t *rounded)
{
    *rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (BUILT_WITH_ASAN || bytes < (size_t)1 << SMALLEST_LOG2 || bytes > CACHED_BYTES)
        return NULL;
    int log2 = 63 - __builtin_clzll(bytes);
    size_t quarter = ((size_t)1 << log2) / PER_DOUBLING;
    size_t quarters = (bytes + quarter - 1) / quarter; /* 4 to 8; 8 is the next doubling's first */
    *rounded = quarters * quarter;
    return &classes[(size_t)(log2 - SMALLEST_LOG2) * PER_DOUBLING + quarters - PER_DOUBLING];
}

static struct block *take(struct size_class *class, size_t bytes)
{
    pthread_mutex_lock(&class->lock);
    struct block *block = class->free;
    if (block)
        class->free = block->next;
    pthread_mutex_unlock(&class->lock);
    if (block)
        atomic_fetch_sub_explicit(&cached_bytes, bytes, memory_order_relaxed);
    return block;
}

static bool keep(struct size_class *class, struct block *block, size_t bytes)
{
    size_t before = atomic_fetch_add_explicit(&cached_bytes, bytes, memory_order_relaxed);
    if (before > CACHED_BYTES - bytes) {
        atomic_fetch_sub_explicit(&cached_bytes, bytes, memory_order_relaxed);
        return false;
    }
    pthread_mutex_lock(&class->lock);
    block->next = class->free;
    class->free = block;
    pthread_mutex_unlock(&class->lock);
    return true;
}

static void *allocate(size_t bytes)
{
    size_t rounded;
    if (memory_is_guarded())
        return memory_alloc(bytes, ALIGNMENT, MEMORY_FRESH);
    struct size_class *class = class_of(bytes, &rounded);
    void *memory = class ? take(class, rounded) : NULL;
    return memory ? memory : aligned_alloc(ALIGNMENT, rounded);
}

void *cpu_alloc(int index, size_t bytes)
{
    (void)index;
    void *memory = allocate(bytes);
    return memory ? memory
                  : raise_null(MemoryError, "out of memory: %zu bytes for a tensor", bytes);
}

void cpu_free(int index, void *memory, size_t bytes)
{
    (void)index;
    size_t rounded;
    if (memory_release(memory))
        return;
    struct size_class *class = class_of(bytes, &rounded);
    if (!class || !keep(class, memory, rounded))
        free(memory);
}

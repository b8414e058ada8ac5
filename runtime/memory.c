/* memory.c - memory between guards.
 *
 *     | struct block | front guard | the caller's bytes | back guard |
 *
 * All blocks are in a table by address, so that a block of malloc's is told from one of ours
 * without looking at it. A freed one stays in the table, in a queue, until QUARANTINE_BYTES younger
 * ones follow: meanwhile it can be neither reused nor freed twice. */
#define _GNU_SOURCE
#include "runtime/memory_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUARD_BYTES = 64,
    GUARD = 0xFC,
    BUCKETS = 1 << 13,
    QUARANTINE_BYTES = 4 << 20,
    FILLED_MOST = 64 << 20, /* a larger block's rest is left alone: perhaps nobody touches it */
    STEPS = 32,             /* frames that are looked at for student code */
};

struct block {
    struct block *next;  /* in its bucket */
    struct block *freed; /* the one that was freed after it */
    unsigned char *memory;
    struct memory_error origin; /* its size and who allocated it; kind 0 */
    bool is_freed;
};

static struct {
    atomic_bool on;
    uintptr_t low, high;
    void (*found)(const struct memory_error *error);
    pthread_mutex_t lock;
    struct block *buckets[BUCKETS];
    struct block *oldest, *youngest; /* the queue of those freed */
    size_t quarantined;
} guarded = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool memory_is_guarded(void)
{
    return atomic_load_explicit(&guarded.on, memory_order_acquire);
}

/* ---- who allocates ---- */

/* Where this thread's stack ends. */
static _Thread_local uintptr_t stack_end;

static uintptr_t find_stack_end(void)
{
#ifdef __APPLE__
    return (uintptr_t)pthread_get_stackaddr_np(pthread_self());
#else
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)low + bytes;
#endif
}

/* Follow the frame pointers, which the runtime and student code have. Code that has none may leave
 * anything in their place: only what lies further up this stack is followed. */
static void note_origin(struct memory_error *origin)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    if (!stack_end)
        stack_end = find_stack_end();
    for (int step = 0; step < STEPS && origin->frames < MEMORY_FRAMES; step++) {
        uintptr_t caller = frame[0];
        if (frame[1] >= guarded.low && frame[1] < guarded.high)
            origin->at[origin->frames++] = frame[1];
        if (caller <= (uintptr_t)frame || caller % sizeof caller ||
            caller + 2 * sizeof caller > stack_end)
            return;
        frame = (const uintptr_t *)caller;
    }
}

/* ---- the table; with the lock held ---- */

static struct block **bucket_of(const void *memory)
{
    return &guarded.buckets[((uintptr_t)memory >> 4) * 2654435761u / 8 % BUCKETS];
}

static struct block *find(const void *memory)
{
    struct block *block = *bucket_of(memory);
    while (block && block->memory != memory)
        block = block->next;
    return block;
}

static void forget(struct block *block)
{
    struct block **at = bucket_of(block->memory);
    while (*at != block)
        at = &(*at)->next;
    *at = block->next;
}

/* ---- what is wrong with a block ---- */

static bool is_filled(const unsigned char *bytes, size_t n, int fill)
{
    return n == 0 || (bytes[0] == fill && memcmp(bytes, bytes + 1, n - 1) == 0);
}

static size_t filled_bytes(size_t bytes)
{
    return bytes < FILLED_MOST ? bytes : FILLED_MOST;
}

/* returns: the kind of error, or 0 */
static int examine(const struct block *block)
{
    const unsigned char *front = (const unsigned char *)(block + 1);
    const unsigned char *back = block->memory + block->origin.bytes;
    if (!is_filled(back, GUARD_BYTES, GUARD))
        return MEMORY_PAST_END;
    if (!is_filled(front, (size_t)(block->memory - front), GUARD))
        return MEMORY_BEFORE_START;
    if (block->is_freed &&
        !is_filled(block->memory, filled_bytes(block->origin.bytes), MEMORY_FREED))
        return MEMORY_AFTER_FREE;
    return 0;
}

/* The first error counts. */
static void note(struct memory_error *error, const struct block *block, int kind)
{
    if (!kind || error->kind)
        return;
    *error = block->origin;
    error->kind = (enum memory_error_kind)kind;
}

/* Without the lock. */
static void report(const struct memory_error *error)
{
    if (error->kind)
        guarded.found(error);
}

static void examine_all(struct memory_error *error)
{
    for (int i = 0; i < BUCKETS; i++)
        for (const struct block *block = guarded.buckets[i]; block; block = block->next)
            note(error, block, examine(block));
}

void memory_check(void)
{
    struct memory_error error = {0};
    pthread_mutex_lock(&guarded.lock);
    examine_all(&error);
    pthread_mutex_unlock(&guarded.lock);
    report(&error);
}

/* The thread that crashed may hold the lock. */
struct memory_error memory_find_error(void)
{
    struct memory_error error = {0};
    if (pthread_mutex_trylock(&guarded.lock) != 0)
        return error;
    examine_all(&error);
    pthread_mutex_unlock(&guarded.lock);
    return error;
}

/* ---- allocating ---- */

static bool add_sizes(size_t bytes, size_t alignment, size_t *total)
{
    size_t around = sizeof(struct block) + 2 * GUARD_BYTES + alignment;
    return !__builtin_add_overflow(bytes, around, total) && bytes <= PTRDIFF_MAX;
}

static void lay_out(struct block *block, size_t bytes, size_t alignment)
{
    unsigned char *front = (unsigned char *)(block + 1);
    uintptr_t least = (uintptr_t)front + GUARD_BYTES;
    block->memory = front + GUARD_BYTES + (-least & (alignment - 1));
    block->origin.bytes = bytes;
    memset(front, GUARD, (size_t)(block->memory - front));
    memset(block->memory + bytes, GUARD, GUARD_BYTES);
}

void *memory_alloc(size_t bytes, size_t alignment, int fill)
{
    size_t total;
    if (!add_sizes(bytes, alignment, &total))
        return NULL;
    struct block *block = fill ? malloc(total) : calloc(1, total);
    if (!block)
        return NULL;
    *block = (struct block){0};
    lay_out(block, bytes, alignment);
    if (fill)
        memset(block->memory, fill, filled_bytes(bytes));
    note_origin(&block->origin);
    pthread_mutex_lock(&guarded.lock);
    struct block **bucket = bucket_of(block->memory);
    block->next = *bucket;
    *bucket = block;
    pthread_mutex_unlock(&guarded.lock);
    return block->memory;
}

/* ---- releasing; with the lock held ---- */

static void enqueue(struct block *block)
{
    block->is_freed = true;
    memset(block->memory, MEMORY_FREED, filled_bytes(block->origin.bytes));
    if (guarded.youngest)
        guarded.youngest->freed = block;
    else
        guarded.oldest = block;
    guarded.youngest = block;
    guarded.quarantined += sizeof *block + block->origin.bytes;
}

static void dequeue(struct memory_error *error)
{
    struct block *block = guarded.oldest;
    guarded.oldest = block->freed;
    if (!guarded.oldest)
        guarded.youngest = NULL;
    guarded.quarantined -= sizeof *block + block->origin.bytes;
    note(error, block, examine(block));
    forget(block);
    free(block);
}

static void retire(struct block *block, struct memory_error *error)
{
    if (block->is_freed) {
        note(error, block, MEMORY_FREED_TWICE);
        return;
    }
    note(error, block, examine(block));
    enqueue(block);
    while (guarded.quarantined > QUARANTINE_BYTES)
        dequeue(error);
}

bool memory_release(void *memory)
{
    struct memory_error error = {0};
    if (!memory_is_guarded())
        return false;
    pthread_mutex_lock(&guarded.lock);
    struct block *block = find(memory);
    if (block)
        retire(block, &error);
    pthread_mutex_unlock(&guarded.lock);
    report(&error);
    return block != NULL;
}

bool memory_size(const void *memory, size_t *bytes)
{
    pthread_mutex_lock(&guarded.lock);
    const struct block *block = find(memory);
    *bytes = block ? block->origin.bytes : 0;
    pthread_mutex_unlock(&guarded.lock);
    return block != NULL;
}

/* ---- for the runtime ---- */

void *memory_new(size_t bytes)
{
    return memory_is_guarded() ? memory_alloc(bytes, _Alignof(max_align_t), 0) : calloc(1, bytes);
}

void memory_delete(void *memory)
{
    if (!memory_release(memory))
        free(memory);
}

void memory_guard(uintptr_t low, uintptr_t high, const void *frame,
                  void (*found)(const struct memory_error *error))
{
    stack_end = (uintptr_t)frame;
    guarded.low = low;
    guarded.high = high;
    guarded.found = found;
    atomic_store_explicit(&guarded.on, true, memory_order_release);
}

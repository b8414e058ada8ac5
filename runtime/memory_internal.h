#ifndef RUNTIME_MEMORY_INTERNAL_H
#define RUNTIME_MEMORY_INTERNAL_H
/* memory_internal.h - memory between guards, for a process that runs student code.
 *
 * Once memory_guard was called, what student code allocates, and what the runtime allocates on its
 * behalf (scopes, tensors, tensors' elements on the CPU), lies between two guards, is filled with a
 * pattern before its first use and with another after its last, and is kept from reuse for a while.
 * Whoever reads memory that nobody wrote, or that is gone, gets the same nonsense in every run;
 * whoever writes where he must not is found when the block is freed, or by memory_check. Until then
 * all is malloc, calloc and free. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_FRAMES = 4 };
enum { MEMORY_FRESH = 0xFB, MEMORY_FREED = 0xFD }; /* no pointer, no index, no small number */

struct memory_error {
    enum memory_error_kind {
        MEMORY_PAST_END = 1, /* written past the block's end */
        MEMORY_BEFORE_START, /* written before it */
        MEMORY_AFTER_FREE,   /* written after it was freed */
        MEMORY_FREED_TWICE,
    } kind;
    size_t bytes;                /* size of the block */
    int frames;                  /* student code that allocated it, innermost first: */
    uintptr_t at[MEMORY_FRAMES]; /* addresses to which its calls return */
};

/* memory_guard - from now on guard memory and call `found` with each error, in the thread that
 * found it; [low, high) is where student code lies, `frame` what __builtin_frame_address(0) gives
 * in the function that will call it in this thread. */
void memory_guard(uintptr_t low, uintptr_t high, const void *frame,
                  void (*found)(const struct memory_error *error));
bool memory_is_guarded(void);

/* memory_check - look at the guards of all blocks; the first error is reported
 * memory_find_error - returned instead (kind 0: none); for a handler of a crash, in which it may
 * crash again */
void memory_check(void);
struct memory_error memory_find_error(void);

/* memory_new, memory_delete - calloc(1, bytes) and free, guarded if memory is. memory_delete takes
 * any block of malloc's too, and NULL. */
void *memory_new(size_t bytes);
void memory_delete(void *memory);

/* memory_alloc - a guarded block with every byte set to `fill`; alignment: a power of two
 * owns: the caller, until memory_release. errors: NULL if there is no memory */
void *memory_alloc(size_t bytes, size_t alignment, int fill);

/* memory_release - returns: false if this is no guarded block, nothing has been done then */
bool memory_release(void *memory);

/* memory_size - of a guarded block. returns: false if this is none */
bool memory_size(const void *memory, size_t *bytes);
#endif

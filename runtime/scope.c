#include "runtime/scope.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/error.h"
#include "runtime/memory_internal.h"
#include "runtime/object.h"

/* A scope is a lock-free list: workers push onto the scope of whoever submitted their task. */
struct entry {
    struct entry *next;
    struct object *object; /* NULL: the entry is itself the memory that scope_alloc gave out */
    void *guarded;         /* that memory, elsewhere, where memory is guarded; or NULL */
    _Alignas(max_align_t) char memory[];
};

struct scope {
    _Atomic(struct entry *) entries;
    atomic_int references;
    struct scope *outer;
};

static _Thread_local struct scope *current;
static void (*on_exhaustion)(void);

struct scope *scope_begin(void)
{
    struct scope *scope = calloc(1, sizeof *scope);
    if (!scope && on_exhaustion)
        on_exhaustion();
    if (!scope) {
        fputs("out of memory: cannot open a scope\n", stderr);
        abort();
    }
    atomic_init(&scope->references, 1);
    scope->outer = current;
    return current = scope;
}

void scope_end(struct scope **scope)
{
    current = (*scope)->outer;
    scope_release(*scope);
    *scope = NULL;
}

static void *no_memory(size_t bytes)
{
    if (on_exhaustion)
        on_exhaustion();
    return raise_null(MemoryError, "out of memory: %zu bytes asked of the scope", bytes);
}

static struct entry *push(size_t bytes, struct object *object)
{
    if (!current)
        return raise_null(RuntimeError,
                          "no scope is open in this thread: put SCOPE; in its function");
    struct entry *entry =
        bytes <= SIZE_MAX - sizeof *entry ? calloc(1, sizeof *entry + bytes) : NULL;
    if (!entry)
        return no_memory(bytes);
    entry->object = object;
    entry->next = atomic_load_explicit(&current->entries, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&current->entries, &entry->next, entry,
                                                  memory_order_release, memory_order_relaxed))
        ;
    return entry;
}

void *scope_alloc(size_t bytes)
{
    bool apart = memory_is_guarded();
    struct entry *entry = push(apart ? 0 : bytes, NULL);
    if (!entry || !apart)
        return entry ? entry->memory : NULL;
    entry->guarded = memory_new(bytes);
    return entry->guarded ? entry->guarded : no_memory(bytes);
}

char *scope_printf(const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : scope_alloc((size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

void *scope_own(struct object *object)
{
    if (object && !push(0, object)) {
        object_release(object);
        return NULL;
    }
    return object;
}

void scope_on_exhaustion(void (*give_up)(void))
{
    on_exhaustion = give_up;
}

struct scope *scope_current(void)
{
    return current;
}

struct scope *scope_enter(struct scope *scope)
{
    struct scope *former = current;
    current = scope;
    return former;
}

struct scope *scope_retain(struct scope *scope)
{
    if (scope)
        atomic_fetch_add_explicit(&scope->references, 1, memory_order_relaxed);
    return scope;
}

void scope_release(struct scope *scope)
{
    if (!scope || atomic_fetch_sub_explicit(&scope->references, 1, memory_order_acq_rel) != 1)
        return;
    struct entry *next;
    for (struct entry *entry = atomic_load(&scope->entries); entry; entry = next) {
        next = entry->next;
        object_release(entry->object);
        memory_delete(entry->guarded);
        free(entry);
    }
    free(scope);
}

#ifndef RUNTIME_SCOPE_H
#define RUNTIME_SCOPE_H
/* scope.h - memory that frees itself.
 *
 * Every thread has a current scope. What the runtime returns to you is borrowed from it and stays
 * valid until the scope ends; the harness opens one around your functions, so you free nothing.
 * To bound memory in a long loop, open your own:
 *
 *     for (int step = 0; step < steps; step++) {
 *         SCOPE;
 *         ...
 *     }
 *
 * Scopes nest and end in reverse order, in the thread that began them. source: Cocoa's autorelease
 * pools. */
#include <stddef.h>

struct scope;
struct object;

/* scope_begin - open a scope, current until its scope_end
 * owns: the caller, who ends it. Memory that cannot be had ends the process with a message. */
struct scope *scope_begin(void);

/* scope_end - close *scope and let go of everything borrowed from it. What others hold lives on. */
void scope_end(struct scope **scope);

/* SCOPE - a scope that lasts until the closing brace */
#define SCOPE                                                                                      \
    __attribute__((cleanup(scope_end), unused)) struct scope *scope_of_this_block = scope_begin()

/* scope_alloc - zeroed memory, aligned for any type, that the current scope frees
 * owns:   borrowed, valid until the current scope ends
 * errors: MemoryError, with NULL; RuntimeError if the thread has no scope */
void *scope_alloc(size_t bytes);

/* scope_printf - a string formatted into the current scope. errors: as scope_alloc */
char *scope_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- for the runtime and those who run student code ---- */

/* scope_own - hand one reference to `object` to the current scope
 * returns: `object`, now borrowed; NULL passes through
 * errors:  as scope_alloc; the object has then been released */
void *scope_own(struct object *object);

/* scope_on_exhaustion - from now on, in this process, call `give_up` where scope_alloc and
 * scope_begin find no memory. It does not return. */
void scope_on_exhaustion(void (*give_up)(void));

/* scope_current, scope_enter - the thread's scope; make another one current and return the former.
 * A task runs in its submitter's scope: retained when submitted, entered by the worker. Allocation
 * in one scope from several threads is safe. */
struct scope *scope_current(void);
struct scope *scope_enter(struct scope *scope);
struct scope *scope_retain(struct scope *scope);
void scope_release(struct scope *scope);
#endif

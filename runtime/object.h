#ifndef RUNTIME_OBJECT_H
#define RUNTIME_OBJECT_H
/* object.h - atomic reference counts, the first member of everything the runtime shares:
 * storages, tensors, autograd nodes, modules, optimizers.
 *
 * Internal to the runtime. A new object has one reference, its creator's; giving that reference to
 * the current scope (scope_own) makes the object borrowed from the scope. */
#include <stdatomic.h>

struct object {
    atomic_int references;
    void (*destroy)(struct object *self); /* frees self; called with the last reference gone */
};

/* object_init - one reference, held by the caller */
void object_init(struct object *object, void (*destroy)(struct object *self));

/* object_retain, object_release - NULL is allowed. source: Py_XINCREF, Py_XDECREF */
void object_retain(struct object *object);
void object_release(struct object *object);
#endif

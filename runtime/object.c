#include "runtime/object.h"

#include <stddef.h>

void object_init(struct object *object, void (*destroy)(struct object *self))
{
    atomic_init(&object->references, 1);
    object->destroy = destroy;
}

void object_retain(struct object *object)
{
    if (object)
        atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

void object_release(struct object *object)
{
    if (object && atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1)
        object->destroy(object);
}

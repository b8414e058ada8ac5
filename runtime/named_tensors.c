#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/nn.h"
#include "runtime/object.h"
#include "runtime/scope.h"

/* The list holds its names and tensors itself, so that it may grow in a scope further in than the
 * one that it is borrowed from. */
struct list {
    struct object object;
    struct named_tensors named;
    int capacity;
};

static struct list *list_of(struct named_tensors *named)
{
    return (struct list *)((char *)named - offsetof(struct list, named));
}

static void destroy(struct object *object)
{
    struct list *list = (struct list *)object;
    for (int i = 0; i < list->named.n; i++) {
        free((char *)list->named.at[i].name);
        tensor_release(list->named.at[i].tensor);
    }
    free(list->named.at);
    free(list);
}

struct named_tensors *named_tensors_new(void)
{
    struct list *list = calloc(1, sizeof *list);
    if (!list)
        return raise_null(MemoryError, "out of memory for a list of tensors");
    object_init(&list->object, destroy);
    return scope_own(&list->object) ? &list->named : NULL;
}

static bool make_room(struct list *list)
{
    if (list->named.n < list->capacity)
        return true;
    int capacity = list->capacity ? 2 * list->capacity : 16;
    struct named_tensor *at = realloc(list->named.at, (size_t)capacity * sizeof *at);
    if (!at)
        return false;
    list->named.at = at;
    list->capacity = capacity;
    return true;
}

int named_tensors_add(struct named_tensors *named, const char *name, struct tensor *tensor)
{
    if (!named || !name || !tensor)
        return -1;
    struct list *list = list_of(named);
    char *copy = make_room(list) ? strdup(name) : NULL;
    if (!copy)
        return raise_error(MemoryError, "out of memory for a list of tensors");
    named->at[named->n++] = (struct named_tensor){copy, tensor_retain(tensor)};
    return 0;
}

struct tensor *named_tensors_find(const struct named_tensors *named, const char *name)
{
    for (int i = 0; named && i < named->n; i++)
        if (strcmp(named->at[i].name, name) == 0)
            return named->at[i].tensor;
    return NULL;
}

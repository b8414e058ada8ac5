#include <string.h>

#include "runtime/autograd.h"
#include "runtime/module_internal.h"
#include "runtime/scope.h"

struct list {
    struct named_modules named;
    int capacity;
};

static const char *join(const char *prefix, const char *name)
{
    return *prefix ? scope_printf("%s.%s", prefix, name) : scope_printf("%s", name);
}

static bool modules_contain(const struct named_modules *list, const struct module *module)
{
    for (int i = 0; i < list->n; i++)
        if (list->at[i].module == module)
            return true;
    return false;
}

/* Room doubles in the scope: a module may be reached along many paths and is listed once. */
static int list_module(struct list *list, struct module *module, const char *name)
{
    if (list->named.n == list->capacity) {
        int capacity = 2 * list->capacity + 8;
        struct named_module *at = scope_alloc((size_t)capacity * sizeof *at);
        if (!at)
            return -1;
        if (list->named.n)
            memcpy(at, list->named.at, (size_t)list->named.n * sizeof *at);
        list->named.at = at;
        list->capacity = capacity;
    }
    list->named.at[list->named.n++] = (struct named_module){name, module};
    return 0;
}

static int list_modules(struct list *list, struct module *module, const char *name)
{
    if (!name)
        return -1;
    if (modules_contain(&list->named, module))
        return 0;
    if (list_module(list, module, name) < 0)
        return -1;
    for (int i = 0; i < module->children.n; i++) {
        struct member *child = &module->children.at[i];
        if (list_modules(list, child->value, join(name, child->name)) < 0)
            return -1;
    }
    return 0;
}

struct named_modules *module_named_modules(struct module *module)
{
    struct list *list = module ? scope_alloc(sizeof *list) : NULL;
    return list && list_modules(list, module, "") == 0 ? &list->named : NULL;
}

static bool tensors_contain(const struct named_tensors *list, const struct tensor *tensor)
{
    for (int i = 0; i < list->n; i++)
        if (list->at[i].tensor == tensor)
            return true;
    return false;
}

struct named_tensors *module_named_parameters(const struct module *module)
{
    struct named_modules *modules = module_named_modules((struct module *)module);
    struct named_tensors *list = modules ? named_tensors_new() : NULL;
    for (int i = 0; list && i < modules->n; i++) {
        const struct members *own = &modules->at[i].module->parameters;
        for (int k = 0; k < own->n; k++)
            if (!tensors_contain(list, own->at[k].value) &&
                named_tensors_add(list, join(modules->at[i].name, own->at[k].name),
                                  own->at[k].value) < 0)
                return NULL;
    }
    return list;
}

/* ---- flags and gradients of all parameters ---- */

int module_set_requires_grad(struct module *module, bool requires_grad)
{
    SCOPE;
    struct named_tensors *all = module_named_parameters(module);
    for (int i = 0; all && i < all->n; i++)
        if (!tensor_set_requires_grad(all->at[i].tensor, requires_grad))
            return -1;
    return all ? 0 : -1;
}

void module_zero_grad(struct module *module)
{
    SCOPE;
    struct named_tensors *all = module_named_parameters(module);
    for (int i = 0; all && i < all->n; i++)
        tensor_set_grad(all->at[i].tensor, NULL);
}

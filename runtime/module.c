#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/module_internal.h"
#include "runtime/scope.h"

/* ---- members ---- */

static struct member *members_find(const struct members *members, const char *name)
{
    for (int i = 0; i < members->n; i++)
        if (strcmp(members->at[i].name, name) == 0)
            return &members->at[i];
    return NULL;
}

static bool members_make_room(struct members *members)
{
    if (members->n < members->capacity)
        return true;
    int capacity = members->capacity ? 2 * members->capacity : 4;
    struct member *at = realloc(members->at, (size_t)capacity * sizeof *at);
    if (!at)
        return false;
    members->at = at;
    members->capacity = capacity;
    return true;
}

static int members_add(struct members *members, const char *name, void *value)
{
    char *copy = members_make_room(members) ? strdup(name) : NULL;
    if (!copy)
        return raise_error(MemoryError, "out of memory for module member \"%s\"", name);
    members->at[members->n++] = (struct member){copy, value};
    return 0;
}

/* ---- a module's life ---- */

static void destroy(struct object *object)
{
    struct module *module = (struct module *)object;
    for (int i = 0; i < module->parameters.n; i++) {
        free(module->parameters.at[i].name);
        tensor_release(module->parameters.at[i].value);
    }
    for (int i = 0; i < module->children.n; i++) {
        free(module->children.at[i].name);
        module_release(module->children.at[i].value);
    }
    free(module->parameters.at);
    free(module->children.at);
    free(module->environment);
    free(module);
}

struct module *module_new(const struct module_class *class)
{
    return module_new_with(class, NULL, 0);
}

struct module *module_new_with(const struct module_class *class, const void *environment,
                               size_t bytes)
{
    struct module *module = calloc(1, sizeof *module);
    void *copy = module && bytes ? malloc(bytes) : NULL;
    if (!module || (bytes && !copy)) {
        free(module);
        return raise_null(MemoryError, "out of memory for a %s module", class->name);
    }
    if (bytes)
        memcpy(copy, environment, bytes);
    module->class = class;
    module->environment = copy;
    module->environment_bytes = bytes;
    object_init(&module->object, destroy);
    return scope_own(&module->object);
}

void *module_environment(struct module *module)
{
    return module->environment;
}

struct module *module_retain(struct module *module)
{
    if (module)
        object_retain(&module->object);
    return module;
}

void module_release(struct module *module)
{
    if (module)
        object_release(&module->object);
}

/* ---- building ---- */

static int check_name(const struct module *module, const char *name)
{
    if (!*name || strchr(name, '.'))
        return raise_error(ValueError, "a member's name must not be empty or have a dot: \"%s\"",
                           name);
    if (members_find(&module->parameters, name) || members_find(&module->children, name))
        return raise_error(ValueError, "%s already has a member \"%s\"", module->class->name, name);
    return 0;
}

/* A module inside itself would never be freed, and its forward would never end. */
static int check_not_inside(struct module *module, const struct module *outer)
{
    SCOPE;
    struct named_modules *inner = module_named_modules(module);
    for (int i = 0; inner && i < inner->n; i++)
        if (inner->at[i].module == outer)
            return raise_error(ValueError, "a module cannot be put inside itself");
    return inner ? 0 : -1;
}

int module_add_parameter(struct module *module, const char *name, struct tensor *parameter)
{
    if (!module || !name || !parameter || check_name(module, name) < 0 ||
        members_add(&module->parameters, name, parameter) < 0)
        return -1;
    tensor_retain(parameter);
    return 0;
}

int module_add_child(struct module *module, const char *name, struct module *child)
{
    if (!module || !name || !child || check_name(module, name) < 0 ||
        check_not_inside(child, module) < 0 || members_add(&module->children, name, child) < 0)
        return -1;
    module_retain(child);
    return 0;
}

/* ---- looking up ---- */

struct tensor *module_parameter(const struct module *module, const char *name)
{
    struct member *member = members_find(&module->parameters, name);
    return member ? member->value : NULL;
}

struct module *module_child(const struct module *module, const char *name)
{
    struct member *member = members_find(&module->children, name);
    return member ? member->value : NULL;
}

int module_child_count(const struct module *module)
{
    return module->children.n;
}

struct module *module_child_at(const struct module *module, int index)
{
    return module->children.at[index].value;
}

const struct module_class *module_class_of(const struct module *module)
{
    return module->class;
}

struct tensor *module_forward(struct module *module, struct tensor *x)
{
    return module && x ? module->class->forward(module, x) : NULL;
}

/* descend - the member that the last part of a dotted name stands for, or NULL; *parent has it */
static struct member *descend(struct module *module, const char *name, struct module **parent)
{
    SCOPE;
    struct member *member = NULL;
    for (const char *part = name; module && part;) {
        const char *dot = strchr(part, '.');
        const char *key = dot ? scope_printf("%.*s", (int)(dot - part), part) : part;
        *parent = module;
        member = key ? members_find(&module->children, key) : NULL;
        module = member ? member->value : NULL;
        part = dot ? dot + 1 : NULL;
    }
    return member;
}

struct module *module_get(struct module *module, const char *name)
{
    if (!module || !name)
        return NULL;
    if (!*name)
        return module;
    struct module *parent;
    struct member *member = descend(module, name, &parent);
    return member ? member->value : raise_null(ValueError, "there is no submodule \"%s\"", name);
}

int module_replace(struct module *module, const char *name, struct module *replacement)
{
    if (!module || !name || !replacement)
        return -1;
    struct module *parent;
    struct member *member = descend(module, name, &parent);
    if (!member)
        return raise_error(ValueError, "there is no submodule \"%s\" to replace", name);
    if (check_not_inside(replacement, parent) < 0)
        return -1;
    struct module *former = member->value;
    member->value = module_retain(replacement);
    module_release(former);
    return 0;
}

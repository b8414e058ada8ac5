#ifndef RUNTIME_MODULE_INTERNAL_H
#define RUNTIME_MODULE_INTERNAL_H
/* module_internal.h - what a module is made of, for module.c and module_copy.c. */
#include "runtime/nn.h"
#include "runtime/object.h"

/* Named members, in the order of registration; each is a struct tensor or a struct module. */
struct member {
    char *name;
    void *value;
};
struct members {
    int n, capacity;
    struct member *at;
};

struct module {
    struct object object;
    const struct module_class *class;
    void *environment;
    size_t environment_bytes;
    struct members parameters, children;
};
#endif

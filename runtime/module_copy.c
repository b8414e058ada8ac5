#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/module_internal.h"
#include "runtime/ops.h"
#include "runtime/scope.h"

/* Deep copies keep what is shared shared, as copy.deepcopy's memo does. */
struct copied {
    const void *original;
    void *copy;
};
struct copier {
    struct tensor *(*convert)(struct tensor *x, const struct copier *copier);
    struct device device;
    enum dtype dtype;
    int n;
    struct copied *memo; /* room for every module and parameter */
};

static void *copied_already(const struct copier *copier, const void *original)
{
    for (int i = 0; i < copier->n; i++)
        if (copier->memo[i].original == original)
            return copier->memo[i].copy;
    return NULL;
}

static void *remember(struct copier *copier, const void *original, void *copy)
{
    if (copy)
        copier->memo[copier->n++] = (struct copied){original, copy};
    return copy;
}

static struct tensor *keep(struct tensor *x, const struct copier *copier)
{
    (void)copier;
    return x;
}

static struct tensor *move(struct tensor *x, const struct copier *copier)
{
    return tensor_to(x, copier->device);
}

static struct tensor *cast(struct tensor *x, const struct copier *copier)
{
    return tensor_cast(x, copier->dtype);
}

static struct tensor *copy_parameter(struct copier *copier, struct tensor *parameter)
{
    struct tensor *copy = copied_already(copier, parameter);
    if (copy)
        return copy;
    NO_GRAD;
    copy = copier->convert(parameter, copier);
    if (copy == parameter)
        copy = tensor_clone(parameter);
    if (copy && tensor_requires_grad(parameter) && tensor_dtype(copy) != FLOAT16)
        copy = tensor_set_requires_grad(copy, true);
    return remember(copier, parameter, copy);
}

static struct module *copy_module(struct copier *copier, const struct module *module)
{
    struct module *copy = copied_already(copier, module);
    if (copy)
        return copy;
    copy = module_new_with(module->class, module->environment, module->environment_bytes);
    for (int i = 0; copy && i < module->parameters.n; i++) {
        const struct member *own = &module->parameters.at[i];
        if (module_add_parameter(copy, own->name, copy_parameter(copier, own->value)) < 0)
            return NULL;
    }
    for (int i = 0; copy && i < module->children.n; i++) {
        const struct member *own = &module->children.at[i];
        if (module_add_child(copy, own->name, copy_module(copier, own->value)) < 0)
            return NULL;
    }
    return remember(copier, module, copy);
}

/* The copy is made in a scope of its own, so that only the root is left in the caller's. */
static struct module *copy_in_scope(struct copier *copier, const struct module *module)
{
    SCOPE;
    struct named_modules *modules = module_named_modules((struct module *)module);
    struct named_tensors *parameters = module_named_parameters(module);
    if (!modules || !parameters)
        return NULL;
    copier->memo = scope_alloc((size_t)(modules->n + parameters->n) * sizeof *copier->memo);
    return copier->memo ? module_retain(copy_module(copier, module)) : NULL;
}

static struct module *copy_with(struct copier copier, const struct module *module)
{
    struct module *copy = copy_in_scope(&copier, module);
    return copy ? scope_own(&copy->object) : NULL;
}

struct module *module_copy(const struct module *module)
{
    return copy_with((struct copier){.convert = keep}, module);
}

struct module *module_to(const struct module *module, struct device device)
{
    return copy_with((struct copier){.convert = move, .device = device}, module);
}

struct module *module_cast(const struct module *module, enum dtype dtype)
{
    return copy_with((struct copier){.convert = cast, .dtype = dtype}, module);
}

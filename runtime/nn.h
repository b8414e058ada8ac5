#ifndef RUNTIME_NN_H
#define RUNTIME_NN_H
/* nn.h - modules: parameters and submodules under dotted names, and a forward function.
 *
 * A module holds what it is given: constructors take borrowed tensors and modules and retain them.
 * A new module is borrowed from the current scope. The root's own name is "", its child's "0", the
 * child's child's "0.2", a parameter's "0.2.weight", as in PyTorch. source: torch.nn.Module */
#include <stddef.h>

#include "runtime/ops.h"
#include "runtime/rng.h"

struct module;

/* module_class - what kind a module is; compared by address: module_class_of(m) == &Linear.
 * Define your own for a custom module; forward gets the module and the input. */
struct module_class {
    const char *name;
    struct tensor *(*forward)(struct module *self, struct tensor *x);
};
extern const struct module_class Linear, Tanh, GELU, ReLU, Sequential, ResidualBlock, LoRALinear;

/* linear_new - y = x Wᵀ + b; weight (out, in) and bias (out), both uniform in ±1/sqrt(in)
 * errors: ValueError for a size < 1. source: torch.nn.Linear */
struct module *linear_new(int64_t in, int64_t out, enum dtype dtype, struct device device,
                          struct rng *rng);

/* linear_from - the same around given tensors, which require grad from now on (FLOAT16 cannot)
 * shapes: weight (out, in), bias (out), or NULL for none
 * errors: NULL weight passes through; ValueError if the shapes do not fit */
struct module *linear_from(struct tensor *weight, struct tensor *bias);

/* tanh_new, gelu_new, relu_new - tensor_tanh, tensor_gelu, tensor_relu of the input
 * source: torch.nn.Tanh, GELU, ReLU */
struct module *tanh_new(void);
struct module *gelu_new(void);
struct module *relu_new(void);

/* residual_block_new - y = x + 0.1 gelu(linear(x)), child: "linear" (width, width)
 * errors: as linear_new. source: the assignment's ResidualBlock */
struct module *residual_block_new(int64_t width, enum dtype dtype, struct device device,
                                  struct rng *rng);

/* sequential_new - children "0", "1", ..., applied in order; with no children, the identity
 * usage: sequential_new(MODULES(linear_new(...), tanh_new())). A NULL among them passes through. */
struct module *sequential_new(int count, struct module *const *children);
#define MODULES(...)                                                                               \
    (int)(sizeof((struct module *[]){__VA_ARGS__}) / sizeof(struct module *)), (struct module *[]) \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* module_new - a module of any class, without parameters or children yet
 * module_new_with - the same with a private copy of an environment, see module_environment */
struct module *module_new(const struct module_class *class);
struct module *module_new_with(const struct module_class *class, const void *environment,
                               size_t bytes);
void *module_environment(struct module *module);

/* module_add_parameter, module_add_child - register under a name without dots; order is kept
 * errors: -1; NULL arguments pass through; ValueError for a name that is taken, empty or dotted,
 * and for a module put inside itself */
int module_add_parameter(struct module *module, const char *name, struct tensor *parameter);
int module_add_child(struct module *module, const char *name, struct module *child);

/* module_parameter, module_child - by name, one level; NULL (and no error) if there is none.
 * module_child_at - by position, 0 .. module_child_count - 1. owns: borrowed */
struct tensor *module_parameter(const struct module *module, const char *name);
struct module *module_child(const struct module *module, const char *name);
int module_child_count(const struct module *module);
struct module *module_child_at(const struct module *module, int index);

const struct module_class *module_class_of(const struct module *module);

/* module_forward - the module applied to x; NULL module or x passes through */
struct tensor *module_forward(struct module *module, struct tensor *x);

/* module_get - the submodule with a dotted name; "" is the module itself
 * errors: NULL, with ValueError naming what does not exist. source: get_submodule */
struct module *module_get(struct module *module, const char *name);

/* module_replace - put `replacement` in the place of the submodule with a dotted name
 * errors: -1; NULL passes through; ValueError if there is none or the name is "" */
int module_replace(struct module *module, const char *name, struct module *replacement);

/* module_named_parameters, module_named_modules - depth first, own parameters before children's,
 * in the order of registration; a tensor or module found twice is listed once, under its first name
 * owns: list and names are borrowed from the scope, tensors and modules from the model
 * source: named_parameters, named_modules */
struct named_tensor {
    const char *name;
    struct tensor *tensor;
};
struct named_tensors {
    int n;
    struct named_tensor *at;
};
struct named_module {
    const char *name;
    struct module *module;
};
struct named_modules {
    int n;
    struct named_module *at;
};
struct named_tensors *module_named_parameters(const struct module *module);
struct named_modules *module_named_modules(struct module *module);

/* named_tensors_new - an empty list. owns: borrowed from the scope
 * named_tensors_add - append; copies the name and retains the tensor, as long as the list lasts
 *                     errors: -1; NULL passes through
 * named_tensors_find - by name, or NULL (no error). owns: borrowed from the list */
struct named_tensors *named_tensors_new(void);
int named_tensors_add(struct named_tensors *list, const char *name, struct tensor *tensor);
struct tensor *named_tensors_find(const struct named_tensors *list, const char *name);

/* module_set_requires_grad - for every parameter. errors: -1, with TypeError for FLOAT16
 * source: torch.nn.Module.requires_grad_ */
int module_set_requires_grad(struct module *module, bool requires_grad);

/* module_zero_grad - every gradient to none. source: zero_grad(set_to_none=True) */
void module_zero_grad(struct module *module);

/* module_copy - a deep copy: own parameters (same requires_grad, no gradients) and environments.
 * module_to, module_cast - the same on another device or with another dtype (in FLOAT16 nothing
 * requires grad). What is shared inside stays shared. source: copy.deepcopy, to */
struct module *module_copy(const struct module *module);
struct module *module_to(const struct module *module, struct device device);
struct module *module_cast(const struct module *module, enum dtype dtype);

/* module_retain, module_release - as tensor_retain; student code needs neither */
struct module *module_retain(struct module *module);
void module_release(struct module *module);
#endif

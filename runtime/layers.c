#include <math.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/nn.h"
#include "runtime/scope.h"

/* ---- Linear ---- */

static struct tensor *linear_forward(struct module *self, struct tensor *x)
{
    return tensor_linear(x, module_parameter(self, "weight"), module_parameter(self, "bias"));
}
const struct module_class Linear = {"Linear", linear_forward};

static struct tensor *uniform(int ndim, const int64_t *shape, double bound, enum dtype dtype,
                              struct device device, struct rng *rng)
{
    return tensor_uniform_(tensor_empty(ndim, shape, dtype, device), -bound, bound, rng);
}

struct module *linear_new(int64_t in, int64_t out, enum dtype dtype, struct device device,
                          struct rng *rng)
{
    if (in < 1 || out < 1)
        return raise_null(ValueError, "Linear needs sizes of at least 1, got in %lld, out %lld",
                          (long long)in, (long long)out);
    const double bound = 1 / sqrt((double)in);
    struct tensor *weight = uniform(SHAPE(out, in), bound, dtype, device, rng);
    struct tensor *bias = uniform(SHAPE(out), bound, dtype, device, rng);
    return bias ? linear_from(weight, bias) : NULL;
}

static bool fits(const struct tensor *weight, const struct tensor *bias)
{
    if (tensor_ndim(weight) != 2)
        return false;
    return !bias || (tensor_ndim(bias) == 1 && tensor_size(bias, 0) == tensor_size(weight, 0));
}

static int add_trained(struct module *module, const char *name, struct tensor *parameter)
{
    if (tensor_dtype(parameter) != FLOAT16 && !tensor_set_requires_grad(parameter, true))
        return -1;
    return module_add_parameter(module, name, parameter);
}

struct module *linear_from(struct tensor *weight, struct tensor *bias)
{
    if (!weight)
        return NULL;
    if (!fits(weight, bias))
        return raise_null(ValueError, "Linear needs weight (out, in) and bias (out), got %s and %s",
                          tensor_shape_name(weight), bias ? tensor_shape_name(bias) : "none");
    struct module *module = module_new(&Linear);
    if (!module || add_trained(module, "weight", weight) < 0 ||
        (bias && add_trained(module, "bias", bias) < 0))
        return NULL;
    return module;
}

/* ---- activations ---- */

static struct tensor *tanh_forward(struct module *self, struct tensor *x)
{
    (void)self;
    return tensor_tanh(x);
}
const struct module_class Tanh = {"Tanh", tanh_forward};

static struct tensor *gelu_forward(struct module *self, struct tensor *x)
{
    (void)self;
    return tensor_gelu(x);
}
const struct module_class GELU = {"GELU", gelu_forward};

static struct tensor *relu_forward(struct module *self, struct tensor *x)
{
    (void)self;
    return tensor_relu(x);
}
const struct module_class ReLU = {"ReLU", relu_forward};

struct module *tanh_new(void)
{
    return module_new(&Tanh);
}

struct module *gelu_new(void)
{
    return module_new(&GELU);
}

struct module *relu_new(void)
{
    return module_new(&ReLU);
}

/* ---- ResidualBlock: x + 0.1 gelu(linear(x)) ---- */

static struct tensor *residual_block_forward(struct module *self, struct tensor *x)
{
    return tensor_gelu_residual(x, module_forward(module_child(self, "linear"), x), 0.1);
}
const struct module_class ResidualBlock = {"ResidualBlock", residual_block_forward};

struct module *residual_block_new(int64_t width, enum dtype dtype, struct device device,
                                  struct rng *rng)
{
    struct module *linear = linear_new(width, width, dtype, device, rng);
    struct module *block = linear ? module_new(&ResidualBlock) : NULL;
    return module_add_child(block, "linear", linear) < 0 ? NULL : block;
}

/* ---- Sequential ---- */

static struct tensor *sequential_forward(struct module *self, struct tensor *x)
{
    for (int i = 0; x && i < module_child_count(self); i++)
        x = module_forward(module_child_at(self, i), x);
    return x;
}
const struct module_class Sequential = {"Sequential", sequential_forward};

struct module *sequential_new(int count, struct module *const *children)
{
    struct module *module = module_new(&Sequential);
    for (int i = 0; module && i < count; i++)
        if (!children[i] || module_add_child(module, scope_printf("%d", i), children[i]) < 0)
            return NULL;
    return module;
}

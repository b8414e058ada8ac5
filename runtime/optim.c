#include "runtime/optim.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/autograd.h"
#include "runtime/error.h"
#include "runtime/object.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"

struct optimizer {
    struct object object;
    double lr;
    int64_t steps;
    struct tensors parameters;
};

static void destroy(struct object *object)
{
    struct optimizer *optimizer = (struct optimizer *)object;
    for (int i = 0; i < optimizer->parameters.n; i++)
        tensor_release(optimizer->parameters.at[i]);
    free(optimizer->parameters.at);
    free(optimizer);
}

/* optimizer_new - with room for `capacity` parameters */
static struct optimizer *optimizer_new(double lr, int capacity)
{
    struct optimizer *optimizer = calloc(1, sizeof *optimizer);
    struct tensor **at = calloc((size_t)capacity + 1, sizeof(struct tensor *));
    if (!optimizer || !at) {
        free(optimizer);
        free(at);
        return raise_null(MemoryError, "out of memory for an optimizer");
    }
    optimizer->lr = lr;
    optimizer->parameters.at = at;
    object_init(&optimizer->object, destroy);
    return scope_own(&optimizer->object);
}

struct optimizer *sgd_new(struct module *model, double lr)
{
    if (!model)
        return NULL;
    if (!(lr >= 0) || !isfinite(lr))
        return raise_null(ValueError, "the learning rate must be finite and not negative, got %g",
                          lr);
    struct named_tensors *all = module_named_parameters(model);
    struct optimizer *sgd = all ? optimizer_new(lr, all->n) : NULL;
    for (int i = 0; sgd && i < all->n; i++)
        if (tensor_requires_grad(all->at[i].tensor))
            sgd->parameters.at[sgd->parameters.n++] = tensor_retain(all->at[i].tensor);
    return sgd;
}

enum { MOST = 64 };

/* Parameters that are updated together: of one device and dtype, contiguous. */
struct together {
    int n;
    struct tensor *parameter[MOST], *grad[MOST];
};

static int together_update(struct together *t, double lr)
{
    if (t->n > 0 && tensor_table(t->parameter[0])->add_many(t->n, t->parameter, t->grad, -lr) < 0)
        return -1;
    for (int i = 0; i < t->n; i++)
        tensor_modified(t->parameter[i]);
    t->n = 0;
    return 0;
}

static bool together_fits(const struct together *t, const struct tensor *x,
                          const struct tensor *grad)
{
    const struct tensor *first = t->n > 0 ? t->parameter[0] : x;
    return t->n < MOST && device_equal(tensor_device(first), tensor_device(x)) &&
           first->dtype == x->dtype && tensor_is_contiguous(x) && tensor_is_contiguous(grad);
}

/* update - one parameter, alone or, where the device has a quicker way, with those that follow */
static int update(struct together *t, struct tensor *x, struct tensor *grad, double lr)
{
    if (!together_fits(t, x, grad) && together_update(t, lr) < 0)
        return -1;
    if (!tensor_table(x)->add_many || !together_fits(t, x, grad))
        return tensor_add_(x, grad, -lr) ? 0 : -1;
    t->parameter[t->n] = x;
    t->grad[t->n++] = grad;
    return 0;
}

int optimizer_step(struct optimizer *optimizer)
{
    if (!optimizer)
        return -1;
    NO_GRAD;
    struct together together = {.n = 0};
    for (int i = 0; i < optimizer->parameters.n; i++) {
        struct tensor *parameter = optimizer->parameters.at[i];
        struct tensor *grad = tensor_grad(parameter);
        if (grad && update(&together, parameter, grad, optimizer->lr) < 0)
            return -1;
    }
    if (together_update(&together, optimizer->lr) < 0)
        return -1;
    optimizer->steps++;
    return 0;
}

void optimizer_zero_grad(struct optimizer *optimizer)
{
    for (int i = 0; optimizer && i < optimizer->parameters.n; i++)
        tensor_set_grad(optimizer->parameters.at[i], NULL);
}

const struct tensors *optimizer_parameters(const struct optimizer *optimizer)
{
    return &optimizer->parameters;
}

double optimizer_lr(const struct optimizer *optimizer)
{
    return optimizer->lr;
}

int64_t optimizer_steps(const struct optimizer *optimizer)
{
    return optimizer->steps;
}

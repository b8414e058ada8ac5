#include "runtime/autograd.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/autograd_internal.h"
#include "runtime/error.h"
#include "runtime/tensor_internal.h"

/* ---- grad mode ---- */

static _Thread_local bool grad_disabled;

bool grad_enabled(void)
{
    return !grad_disabled;
}

bool grad_set_enabled(bool enabled)
{
    bool former = !grad_disabled;
    grad_disabled = !enabled;
    return former;
}

void grad_restore(const bool *mode)
{
    grad_set_enabled(*mode);
}

/* ---- nodes ---- */

void node_clear(struct node *node)
{
    for (int i = 0; i < NODE_SAVED; i++)
        tensor_release(node->saved[i].tensor);
    for (int i = 0; i < node->inputs; i++) {
        object_release((struct object *)node->edges[i].node);
        tensor_release(node->edges[i].leaf);
        tensor_release(node->edges[i].sent);
    }
    for (int i = 0; i < NODE_SAVED; i++)
        node->saved[i].tensor = NULL;
    node->inputs = 0;
}

/* Releasing one node may release a chain of any length: the thread's first node_destroy drains the
 * list that the nested ones add to, so that the stack does not grow with the chain. */
static void node_destroy(struct object *object)
{
    static _Thread_local struct node *dead;
    static _Thread_local bool draining;
    struct node *node = (struct node *)object;
    node->next_dead = dead;
    dead = node;
    if (draining)
        return;
    draining = true;
    while ((node = dead)) {
        dead = node->next_dead;
        node_clear(node);
        free(node);
    }
    draining = false;
}

bool autograd_wants(const struct tensor *x)
{
    return x && grad_enabled() && tensor_requires_grad(x);
}

void edge_init(struct edge *edge, const struct tensor *x)
{
    edge->node = x->node;
    edge->leaf = !x->node && x->requires_grad ? (struct tensor *)x : NULL;
    edge->ndim = x->ndim;
    memcpy(edge->shape, x->shape, sizeof edge->shape);
}

static void edge_retain(struct edge *edge, const struct tensor *x)
{
    if (!x)
        return;
    edge_init(edge, x);
    object_retain((struct object *)edge->node);
    tensor_retain(edge->leaf);
}

static int node_save(struct node *node, const struct record *record)
{
    for (int i = 0; i < NODE_SAVED; i++) {
        if (!record->saved[i])
            continue;
        node->saved[i].tensor = tensor_alias(record->saved[i]);
        if (!node->saved[i].tensor)
            return -1;
        node->saved[i].version = atomic_load(&record->saved[i]->storage->version);
    }
    return 0;
}

/* node_number - by which thread a node was made, and as which of its nodes */
static void node_number(struct node *node)
{
    static atomic_uint lanes;
    static _Thread_local unsigned lane;
    static _Thread_local unsigned long long nodes;
    if (nodes == 0)
        lane = atomic_fetch_add_explicit(&lanes, 1, memory_order_relaxed);
    node->lane = lane;
    node->sequence = nodes++;
}

static struct node *node_new(const struct record *record)
{
    struct node *node = calloc(1, sizeof *node + (size_t)record->n * sizeof *node->edges);
    if (!node)
        return raise_null(MemoryError, "out of memory for the graph");
    object_init(&node->object, node_destroy);
    node_number(node);
    node->name = record->name;
    node->rule = record->rule;
    node->late_rule = record->late_rule;
    node->number = record->number;
    for (int i = 0; i < 2; i++)
        node->integers[i] = record->integers[i];
    node->inputs = record->n;
    for (int i = 0; i < record->n; i++)
        edge_retain(&node->edges[i], record->inputs[i]);
    if (node_save(node, record) == 0)
        return node;
    object_release(&node->object);
    return NULL;
}

struct tensor *autograd_record(struct tensor *output, const struct record *record)
{
    bool wanted = false;
    for (int i = 0; output && i < record->n; i++)
        wanted = wanted || autograd_wants(record->inputs[i]);
    if (!wanted)
        return output;
    struct node *node = node_new(record);
    if (!node)
        return NULL;
    node->on_device = tensor_device(output).kind != DEVICE_CPU;
    object_release((struct object *)output->node);
    output->node = node;
    return output;
}

int autograd_allow_in_place(const struct tensor *x, const struct tensor *y)
{
    if (autograd_wants(x) && !x->node)
        return raise_error(RuntimeError,
                           "a leaf that requires grad cannot be changed in place: put NO_GRAD; "
                           "before it if the change is not to be differentiated");
    if ((autograd_wants(x) || autograd_wants(y)) && atomic_load(&x->storage->viewed))
        return raise_error(RuntimeError,
                           "a change in place of memory that has views cannot be differentiated: "
                           "use tensor_cat or an operation that is not in place");
    return 0;
}

/* ---- leaves ---- */

bool tensor_requires_grad(const struct tensor *x)
{
    return x->node || x->requires_grad;
}

struct tensor *tensor_set_requires_grad(struct tensor *x, bool requires_grad)
{
    if (!x)
        return NULL;
    if (x->node && !requires_grad)
        return raise_null(RuntimeError, "requires_grad can be switched off for leaves only: use "
                                        "tensor_detach for the result of an operation");
    if (requires_grad && x->dtype == FLOAT16)
        return raise_null(TypeError, "a float16 tensor cannot require grad");
    x->requires_grad = requires_grad && !x->node;
    return x;
}

bool tensor_is_leaf(const struct tensor *x)
{
    return !x->node;
}

struct tensor *tensor_grad(const struct tensor *x)
{
    return x->leaf.grad;
}

int tensor_set_grad(struct tensor *x, struct tensor *grad)
{
    if (!x)
        return -1;
    if (grad && (!tensor_same_shape(x, grad) || x->dtype != grad->dtype ||
                 !device_equal(tensor_device(x), tensor_device(grad))))
        return raise_error(ValueError, "a gradient for %s of %s on %s cannot be %s of %s on %s",
                           tensor_shape_name(x), dtype_name(x->dtype),
                           device_name(tensor_device(x)), tensor_shape_name(grad),
                           dtype_name(grad->dtype), device_name(tensor_device(grad)));
    tensor_retain(grad);
    pthread_mutex_lock(&x->leaf.lock);
    struct tensor *former = x->leaf.grad;
    x->leaf.grad = grad;
    pthread_mutex_unlock(&x->leaf.lock);
    tensor_release(former);
    return 0;
}

struct tensor *tensor_detach(struct tensor *x)
{
    return x ? tensor_own(tensor_alias(x)) : NULL;
}

int tensor_on_grad_ready(struct tensor *leaf, void (*hook)(void *context, struct tensor *leaf),
                         void *context)
{
    if (!leaf)
        return -1;
    if (hook && (leaf->node || !leaf->requires_grad))
        return raise_error(ValueError, "only a leaf that requires grad has gradients to wait for");
    leaf->leaf.hook = hook;
    leaf->leaf.context = context;
    return 0;
}

struct tensor *gradient_sum(struct tensor *a, struct tensor *b)
{
    struct tensor *sum = tensor_is_exclusive(a) && tensor_is_contiguous(a)
                             ? tensor_retain(a)
                             : tensor_new(a->ndim, a->shape, a->dtype, tensor_device(a));
    if (sum && tensor_table(sum)->binary(BINARY_ADD, sum, a, b, 1) < 0) {
        tensor_release(sum);
        sum = NULL;
    }
    tensor_release(a);
    return sum;
}

struct tensor *gradient_take(struct tensor *gradient)
{
    size_t bytes = (size_t)gradient->numel * (size_t)dtype_size(gradient->dtype);
    if (tensor_is_exclusive(gradient) && tensor_is_contiguous(gradient) &&
        gradient->storage->bytes <= (bytes ? bytes : 1))
        return gradient;
    struct tensor *copy =
        tensor_new(gradient->ndim, gradient->shape, gradient->dtype, tensor_device(gradient));
    if (copy && tensor_table(copy)->copy(copy, gradient) < 0) {
        tensor_release(copy);
        copy = NULL;
    }
    tensor_release(gradient);
    return copy;
}

static int leaf_add(struct tensor *leaf, struct tensor *gradient)
{
    struct tensor *grad = leaf->leaf.grad;
    if (!grad) {
        leaf->leaf.grad = gradient_take(gradient);
        return leaf->leaf.grad ? 0 : -1;
    }
    int status = tensor_table(grad)->binary(BINARY_ADD, grad, grad, gradient, 1);
    tensor_modified(grad);
    tensor_release(gradient);
    return status;
}

int leaf_accumulate(struct tensor *leaf, struct tensor *gradient)
{
    pthread_mutex_lock(&leaf->leaf.lock);
    int status = leaf_add(leaf, gradient);
    pthread_mutex_unlock(&leaf->leaf.lock);
    return status;
}

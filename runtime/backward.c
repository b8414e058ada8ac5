/* backward.c - going back through the graph.
 *
 * First a plan: a depth-first walk from the result claims every node that leads to a leaf, and
 * gives the order: the reverse of the order in which the walk leaves them, in which every node
 * comes after all that send it gradients. The order follows from the graph alone, whichever threads
 * built it and when; in this order, sums are reproducible to the bit.
 *
 * Then the nodes are run, each once it has all its contributions. Where several threads built the
 * graph, as many run it. Each node is cleared once it has run; a leaf's gradient is completed, and
 * its hook called, with its last contribution. No step recurses. */
#include "runtime/backward_internal.h"
#include "runtime/error.h"
#include "runtime/scope.h"

/* ---- what rules call ---- */

bool backward_wants(const struct backward *run, int i)
{
    return run->node->edges[i].node || run->node->edges[i].leaf;
}

struct tensor *backward_saved(const struct backward *run, int i)
{
    const struct saved *saved = &run->node->saved[i];
    if (atomic_load(&saved->tensor->storage->version) != saved->version)
        return raise_null(RuntimeError,
                          "a tensor of shape %s that backward of %s needs was changed in place",
                          tensor_shape_name(saved->tensor), run->node->name);
    return saved->tensor;
}

/* ---- running ---- */

static int call_hook(struct plan *plan, struct tensor *leaf)
{
    pthread_mutex_t *lock = lanes_lock_hooks(plan);
    leaf->leaf.hook(leaf->leaf.context, leaf);
    lanes_unlock(lock);
    return error_occurred() ? -1 : 0;
}

static int complete_leaf(struct plan *plan, struct target *target)
{
    struct tensor *gradient = target->gradient;
    target->gradient = NULL;
    if (!gradient)
        return 0;
    if (leaf_accumulate(target->leaf, gradient) < 0)
        return -1;
    return target->leaf->leaf.hook ? call_hook(plan, target->leaf) : 0;
}

static int deliver(struct plan *plan, struct edge *edge)
{
    struct target *target = &plan->target[edge->target];
    pthread_mutex_t *lock = lanes_lock_target(plan, edge->target);
    int complete = target_receive(target, edge);
    lanes_unlock(lock);
    if (complete != 1)
        return complete;
    if (target->leaf)
        return complete_leaf(plan, target);
    lanes_push(plan, edge->target);
    return 0;
}

static void release_gradient(struct target *target)
{
    tensor_release(target->gradient);
    target->gradient = NULL;
}

static int call_rule(struct plan *plan, struct target *target, backward_fn *rule)
{
    SCOPE;
    return target->gradient ? rule(&(struct backward){target->node, target->gradient, plan}) : 0;
}

/* run_rule - and deliver what it sent, to the inputs from `first` to before `end`. That comes after
 * the rule's scope has ended and, if it was the last rule, the gradient was let go: what was sent
 * may then be the receiver's alone. */
static int run_rule(struct plan *plan, struct target *target, backward_fn *rule, int first, int end)
{
    struct edge *edges = target->node->edges;
    int status = call_rule(plan, target, rule);
    if (end == target->node->inputs)
        release_gradient(target);
    for (int i = first; status == 0 && i < end; i++)
        if (edges[i].node || edges[i].leaf)
            status = deliver(plan, &edges[i]);
    return status;
}

static void node_is_done(struct target *target)
{
    struct node *node = target->node;
    release_gradient(target);
    target->node = NULL;
    node_clear(node);
    object_release(&node->object);
}

int plan_run_late(struct plan *plan, int at)
{
    struct target *target = &plan->target[at];
    int status = run_rule(plan, target, target->node->late_rule, 1, target->node->inputs);
    node_is_done(target);
    return status;
}

int plan_run_node(struct plan *plan, int at)
{
    struct target *target = &plan->target[at];
    const struct node *node = target->node;
    int status = run_rule(plan, target, node->rule, 0, node->late_rule ? 1 : node->inputs);
    if (status == 0 && node->late_rule)
        return lanes_give_away(plan, at) ? 1 : plan_run_late(plan, at);
    node_is_done(target);
    return status;
}

static int plan_run(struct plan *plan, struct edge *root, const struct tensor *x)
{
    root->sent = tensor_new(x->ndim, x->shape, x->dtype, tensor_device(x));
    root->part_dim = -1;
    int status = root->sent ? tensor_table(x)->fill(root->sent, 1) : -1;
    if (status == 0)
        status = deliver(plan, root);
    tensor_release(root->sent);
    return status == 0 ? lanes_run(plan) : -1;
}

static int check_root(const struct tensor *x)
{
    if (x->numel != 1)
        return raise_error(ValueError, "backward starts from one element, not from shape %s",
                           tensor_shape_name(x));
    if (!tensor_requires_grad(x))
        return raise_error(RuntimeError, "backward of a tensor that does not require grad");
    return 0;
}

int tensor_backward(struct tensor *x)
{
    static atomic_ullong plans;
    if (!x || check_root(x) < 0)
        return -1;
    NO_GRAD;
    struct room room;
    struct plan plan = {.id = atomic_fetch_add(&plans, 1) + 1, .room = &room};
    struct edge root = {0};
    edge_init(&root, x);
    int status = plan_make(&plan, &root);
    if (status == 0)
        status = plan_run(&plan, &root, x);
    plan_free(&plan);
    return status;
}

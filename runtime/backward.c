/* backward.c - going back through the graph.
 *
 * First a plan: a depth-first walk from the result claims every node that leads to a leaf, and
 * gives the order: the reverse of the order in which the walk leaves them, in which every node
 * comes after all that send it gradients. The order follows from the graph alone, whichever threads
 * built it and when, so sums are reproducible to the bit. Then the nodes are run; each is cleared
 * once it has run, and a leaf's gradient is completed with its last contribution. No step recurses.
 */
#include <stdint.h>
#include <stdlib.h>

#include "runtime/autograd_internal.h"
#include "runtime/error.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"

/* A node or leaf that takes part. */
struct task {
    struct node *node;   /* retained, until it has run */
    struct tensor *leaf; /* retained */
    struct tensor *gradient;
    int contributions; /* a leaf's, still to come */
};

struct visit {
    int task, edges_left;
};

struct plan {
    unsigned long long id;
    int tasks, task_capacity;
    struct task *task;
    int ordered; /* nodes, in the order in which the walk left them */
    int *order;
    int depth;
    struct visit *stack;
    int leaf_slots, leaves; /* open addressing: leaf -> task + 1 */
    int *leaf_slot;
};

/* ---- leaves met so far ---- */

static int *leaf_slot(struct plan *plan, const struct tensor *leaf)
{
    uint32_t hash = (uint32_t)(((uintptr_t)leaf >> 4) * 2654435761u);
    for (int mask = plan->leaf_slots - 1;; hash++) {
        int *slot = &plan->leaf_slot[hash & (uint32_t)mask];
        if (*slot == 0 || plan->task[*slot - 1].leaf == leaf)
            return slot;
    }
}

static int leaf_slots_grow(struct plan *plan)
{
    if (2 * plan->leaves < plan->leaf_slots)
        return 0;
    int slots = plan->leaf_slots ? 2 * plan->leaf_slots : 64;
    int *bigger = calloc((size_t)slots, sizeof *bigger);
    if (!bigger)
        return raise_error(MemoryError, "out of memory for backward");
    free(plan->leaf_slot);
    plan->leaf_slot = bigger;
    plan->leaf_slots = slots;
    for (int i = 0; i < plan->tasks; i++)
        if (plan->task[i].leaf)
            *leaf_slot(plan, plan->task[i].leaf) = i + 1;
    return 0;
}

/* ---- the plan ---- */

static int tasks_grow(struct plan *plan)
{
    if (plan->tasks < plan->task_capacity)
        return 0;
    int capacity = plan->task_capacity ? 2 * plan->task_capacity : 64;
    struct task *task = realloc(plan->task, (size_t)capacity * sizeof *task);
    plan->task = task ? task : plan->task;
    int *order = realloc(plan->order, (size_t)capacity * sizeof *order);
    plan->order = order ? order : plan->order;
    struct visit *stack = realloc(plan->stack, (size_t)capacity * sizeof *stack);
    plan->stack = stack ? stack : plan->stack;
    if (!task || !order || !stack)
        return raise_error(MemoryError, "out of memory for backward");
    plan->task_capacity = capacity;
    return 0;
}

static int plan_leaf(struct plan *plan, struct edge *edge)
{
    if (tasks_grow(plan) < 0 || leaf_slots_grow(plan) < 0)
        return -1;
    int *slot = leaf_slot(plan, edge->leaf);
    if (*slot == 0) {
        plan->task[plan->tasks] = (struct task){.leaf = tensor_retain(edge->leaf)};
        *slot = ++plan->tasks;
        plan->leaves++;
    }
    edge->task = *slot - 1;
    plan->task[edge->task].contributions++;
    return 0;
}

static int plan_node(struct plan *plan, struct edge *edge)
{
    struct node *node = edge->node;
    unsigned long long owner = 0;
    if (tasks_grow(plan) < 0)
        return -1;
    if (atomic_compare_exchange_strong(&node->claimed_by, &owner, plan->id)) {
        object_retain(&node->object);
        node->task = plan->tasks++;
        plan->task[node->task] = (struct task){.node = node};
        plan->stack[plan->depth++] = (struct visit){node->task, node->inputs};
    } else if (owner != plan->id) {
        return raise_error(RuntimeError,
                           "%s was used by an earlier backward: a graph can be gone through once, "
                           "compute the loss again",
                           node->name);
    }
    edge->task = node->task;
    return 0;
}

static int plan_edge(struct plan *plan, struct edge *edge)
{
    if (edge->node)
        return plan_node(plan, edge);
    return edge->leaf ? plan_leaf(plan, edge) : 0;
}

static int plan_walk(struct plan *plan, struct edge *root)
{
    if (plan_edge(plan, root) < 0)
        return -1;
    while (plan->depth > 0) {
        struct visit *visit = &plan->stack[plan->depth - 1];
        if (visit->edges_left == 0) {
            plan->order[plan->ordered++] = visit->task;
            plan->depth--;
        } else if (plan_edge(plan, &plan->task[visit->task].node->edges[--visit->edges_left]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A walk that failed changed nothing: the nodes can be claimed again. */
static void plan_unclaim(struct plan *plan)
{
    for (int i = 0; i < plan->tasks; i++)
        if (plan->task[i].node)
            atomic_store(&plan->task[i].node->claimed_by, 0);
}

static void plan_free(struct plan *plan)
{
    for (int i = 0; i < plan->tasks; i++) {
        object_release((struct object *)plan->task[i].node);
        tensor_release(plan->task[i].leaf);
        tensor_release(plan->task[i].gradient);
    }
    free(plan->task);
    free(plan->order);
    free(plan->stack);
    free(plan->leaf_slot);
}

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

int backward_send(struct backward *run, int i, struct tensor *gradient)
{
    if (!gradient)
        return -1;
    if (!backward_wants(run, i))
        return 0;
    struct tensor **sum = &run->plan->task[run->node->edges[i].task].gradient;
    *sum = *sum ? gradient_sum(*sum, gradient) : tensor_retain(gradient);
    return *sum ? 0 : -1;
}

struct tensor *backward_partial(struct backward *run, int i)
{
    struct tensor *sum = run->plan->task[run->node->edges[i].task].gradient;
    return sum && tensor_is_exclusive(sum) && tensor_is_contiguous(sum) ? sum : NULL;
}

/* ---- running ---- */

static int run_rule(struct plan *plan, struct node *node, struct tensor *gradient)
{
    SCOPE;
    return node->rule(&(struct backward){node, gradient, plan});
}

/* After the rule's scope has ended, so that the gradient may be the leaf's alone. */
static int complete_leaves(struct plan *plan, const struct edge *edges, int n)
{
    for (int i = 0; i < n; i++) {
        if (!edges[i].leaf)
            continue;
        struct task *task = &plan->task[edges[i].task];
        if (--task->contributions > 0 || !task->gradient)
            continue;
        struct tensor *gradient = task->gradient;
        task->gradient = NULL;
        if (leaf_accumulate(task->leaf, gradient) < 0)
            return -1;
    }
    return 0;
}

static int run_task(struct plan *plan, struct task *task)
{
    struct node *node = task->node;
    int status = task->gradient ? run_rule(plan, node, task->gradient) : 0;
    tensor_release(task->gradient);
    task->gradient = NULL;
    if (status == 0)
        status = complete_leaves(plan, node->edges, node->inputs);
    node_clear(node);
    task->node = NULL;
    object_release(&node->object);
    return status;
}

static int plan_run(struct plan *plan, struct edge *root, const struct tensor *x)
{
    struct tensor *one = tensor_new(x->ndim, x->shape, x->dtype, tensor_device(x));
    plan->task[root->task].gradient = one;
    if (!one || tensor_table(one)->fill(one, 1) < 0)
        return -1;
    int status = complete_leaves(plan, root, 1);
    while (status == 0 && plan->ordered > 0)
        status = run_task(plan, &plan->task[plan->order[--plan->ordered]]);
    return status;
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
    struct plan plan = {.id = atomic_fetch_add(&plans, 1) + 1};
    struct edge root = edge_of(x);
    int status = plan_walk(&plan, &root);
    if (status < 0)
        plan_unclaim(&plan);
    else
        status = plan_run(&plan, &root, x);
    plan_free(&plan);
    return status;
}

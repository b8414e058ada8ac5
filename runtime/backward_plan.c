#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/backward_internal.h"
#include "runtime/error.h"

/* ---- leaves met so far ---- */

static int *leaf_slot(struct plan *plan, const struct tensor *leaf)
{
    uint32_t hash = (uint32_t)(((uintptr_t)leaf >> 4) * 2654435761u);
    for (int mask = plan->leaf_slots - 1;; hash++) {
        int *slot = &plan->leaf_slot[hash & (uint32_t)mask];
        if (*slot == 0 || plan->target[*slot - 1].leaf == leaf)
            return slot;
    }
}

static int leaf_slots_grow(struct plan *plan)
{
    if (2 * plan->leaves < plan->leaf_slots)
        return 0;
    int slots = 2 * plan->leaf_slots;
    int *bigger = calloc((size_t)slots, sizeof *bigger);
    if (!bigger)
        return raise_error(MemoryError, "out of memory for backward");
    if (plan->leaf_slot != plan->room->leaf_slot)
        free(plan->leaf_slot);
    plan->leaf_slot = bigger;
    plan->leaf_slots = slots;
    for (int i = 0; i < plan->targets; i++)
        if (plan->target[i].leaf)
            *leaf_slot(plan, plan->target[i].leaf) = i + 1;
    return 0;
}

/* ---- the walk ---- */

/* grown - an array of n elements with room for 2 n. errors: NULL, the array is then as it was */
static void *grown(void *array, const void *room, int n, size_t size)
{
    if (array != room)
        return realloc(array, 2 * (size_t)n * size);
    void *bigger = malloc(2 * (size_t)n * size);
    return bigger ? memcpy(bigger, array, (size_t)n * size) : NULL;
}

static int targets_grow(struct plan *plan)
{
    int n = plan->target_capacity;
    if (plan->targets < n)
        return 0;
    struct target *target = grown(plan->target, plan->room->target, n, sizeof *target);
    plan->target = target ? target : plan->target;
    struct visit *stack = grown(plan->stack, plan->room->stack, n, sizeof *stack);
    plan->stack = stack ? stack : plan->stack;
    if (!target || !stack)
        return raise_error(MemoryError, "out of memory for backward");
    plan->target_capacity = 2 * n;
    return 0;
}

static int plan_leaf(struct plan *plan, struct edge *edge)
{
    if (targets_grow(plan) < 0 || leaf_slots_grow(plan) < 0)
        return -1;
    int *slot = leaf_slot(plan, edge->leaf);
    if (*slot == 0) {
        plan->target[plan->targets] = (struct target){.leaf = tensor_retain(edge->leaf)};
        *slot = ++plan->targets;
        plan->leaves++;
        plan->on_device |= tensor_device(edge->leaf).kind != DEVICE_CPU;
    }
    edge->target = *slot - 1;
    return 0;
}

/* plan_lane - the lane of the thread that made the node */
static int plan_lane(struct plan *plan, const struct node *node)
{
    for (int i = 0; i < plan->lane_count; i++)
        if (plan->lane[i].id == node->lane)
            return i;
    if (plan->lane_count == LANES_MAX)
        return (int)(node->lane % LANES_MAX);
    plan->lane[plan->lane_count] = (struct lane){.id = node->lane, .first = node->sequence};
    return plan->lane_count++;
}

static int plan_node(struct plan *plan, struct edge *edge)
{
    struct node *node = edge->node;
    unsigned long long owner = 0;
    if (targets_grow(plan) < 0)
        return -1;
    if (atomic_compare_exchange_strong(&node->claimed_by, &owner, plan->id)) {
        object_retain(&node->object);
        node->target = plan->targets++;
        int lane = plan_lane(plan, node);
        plan->lane[lane].nodes++;
        if (node->sequence < plan->lane[lane].first)
            plan->lane[lane].first = node->sequence;
        plan->target[node->target] = (struct target){.node = node, .lane = lane};
        plan->on_device |= node->on_device;
        plan->stack[plan->depth++] = (struct visit){node->target, 0};
    } else if (owner != plan->id) {
        return raise_error(RuntimeError,
                           "%s was used by an earlier backward: a graph can be gone through once, "
                           "compute the loss again",
                           node->name);
    }
    edge->target = node->target;
    return 0;
}

static int plan_edge(struct plan *plan, struct edge *edge)
{
    if (edge->node)
        return plan_node(plan, edge);
    return edge->leaf ? plan_leaf(plan, edge) : 0;
}

/* number_edge - the walk leaves nodes in the opposite of their order, so the contribution that it
 * comes to last is the first to be added. One finds a sum that is always the same if the source of
 * each is a descendant, in the walk's tree, of the source of the one before. */
static void number_edge(struct plan *plan, struct edge *edge, int source)
{
    struct target *target = &plan->target[edge->target];
    edge->turn = target->to_come++;
    if (edge->turn > 0 && source >= target->last_source)
        target->unsteady = edge->turn;
    target->last_source = source;
}

static void leave_node(struct plan *plan, int target)
{
    struct node *node = plan->target[target].node;
    plan->target[target].place = plan->nodes++;
    for (int i = node->inputs - 1; i >= 0; i--)
        if (node->edges[i].node || node->edges[i].leaf)
            number_edge(plan, &node->edges[i], target);
}

static int plan_walk(struct plan *plan, struct edge *root)
{
    if (plan_edge(plan, root) < 0)
        return -1;
    while (plan->depth > 0) {
        struct visit *visit = &plan->stack[plan->depth - 1];
        struct node *node = plan->target[visit->target].node;
        if (visit->next_edge == node->inputs) {
            leave_node(plan, visit->target);
            plan->depth--;
        } else if (plan_edge(plan, &node->edges[visit->next_edge++]) < 0) {
            return -1;
        }
    }
    number_edge(plan, root, -1);
    return 0;
}

/* A walk that failed changed nothing: the nodes can be claimed again. */
static void plan_unclaim(struct plan *plan)
{
    for (int i = 0; i < plan->targets; i++)
        if (plan->target[i].node)
            atomic_store(&plan->target[i].node->claimed_by, 0);
}

static void plan_init(struct plan *plan)
{
    plan->target = plan->room->target;
    plan->stack = plan->room->stack;
    plan->target_capacity = ROOM;
    plan->leaf_slot = memset(plan->room->leaf_slot, 0, sizeof plan->room->leaf_slot);
    plan->leaf_slots = 2 * ROOM;
    plan->lane = plan->room->lane;
}

int plan_make(struct plan *plan, struct edge *root)
{
    plan_init(plan);
    int status = plan_walk(plan, root);
    if (status == 0)
        status = lanes_open(plan);
    if (status < 0)
        plan_unclaim(plan);
    return status;
}

void plan_free(struct plan *plan)
{
    lanes_close(plan);
    for (int i = 0; i < plan->targets; i++)
        target_free(&plan->target[i]);
    if (plan->target != plan->room->target)
        free(plan->target);
    if (plan->stack != plan->room->stack)
        free(plan->stack);
    if (plan->leaf_slot != plan->room->leaf_slot)
        free(plan->leaf_slot);
}

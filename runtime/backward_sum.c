/* backward_sum.c - gradients added up.
 *
 * The plan numbers the contributions to a node or leaf. One that comes before its turn waits; so a
 * sum is the same to the bit whichever rules ran first. */
#include <assert.h>
#include <stdlib.h>

#include "runtime/backward_internal.h"
#include "runtime/error.h"
#include "runtime/ops_internal.h"
#include "runtime/scope.h"

struct waiting {
    struct waiting *next;
    struct edge edge; /* a copy: the node may be gone */
};

/* ---- adding one contribution ---- */

static int own_sum(struct target *target)
{
    target->gradient = gradient_take(target->gradient);
    return target->gradient ? 0 : -1;
}

/* The slices of one tensor share one gradient. */
static int add_part(struct target *target, const struct edge *edge, const struct tensor *part)
{
    SCOPE;
    if (!target->gradient)
        target->gradient =
            tensor_retain(tensor_zeros(edge->ndim, edge->shape, part->dtype, tensor_device(part)));
    if (!target->gradient || own_sum(target) < 0)
        return -1;
    struct tensor *place =
        op_slice(target->gradient, edge->part_dim, edge->part_start, part->shape[edge->part_dim]);
    return place ? tensor_table(place)->binary(BINARY_ADD, place, place, part, 1) : -1;
}

/* add - takes over edge->sent */
static int add(struct target *target, struct edge *edge)
{
    struct tensor *sent = edge->sent;
    int status = 0;
    edge->sent = NULL;
    target->to_come--;
    if (sent && edge->part_dim >= 0) {
        status = add_part(target, edge, sent);
    } else if (sent && target->gradient) {
        target->gradient = gradient_sum(target->gradient, sent);
        status = target->gradient ? 0 : -1;
    } else if (sent) {
        target->gradient = sent;
        return 0;
    }
    tensor_release(sent);
    return status;
}

/* ---- waiting for a turn ---- */

static int wait_for_turn(struct target *target, struct edge *edge)
{
    struct waiting **at = &target->waiting, *waiting = malloc(sizeof *waiting);
    if (!waiting)
        return raise_error(MemoryError, "out of memory for a gradient that waits");
    while (*at && (*at)->edge.turn > edge->turn)
        at = &(*at)->next;
    *waiting = (struct waiting){.next = *at, .edge = *edge};
    *at = waiting;
    edge->sent = NULL;
    return 0;
}

static struct waiting *waiting_take(struct target *target)
{
    struct waiting *waiting = target->waiting;
    target->waiting = waiting->next;
    return waiting;
}

static void waiting_free(struct waiting *waiting)
{
    tensor_release(waiting->edge.sent);
    free(waiting);
}

static int add_those_waiting(struct target *target)
{
    int status = 0;
    while (status == 0 && target->waiting && target->waiting->edge.turn + 1 == target->to_come) {
        struct waiting *waiting = waiting_take(target);
        status = add(target, &waiting->edge);
        free(waiting);
    }
    return status;
}

int target_receive(struct target *target, struct edge *edge)
{
    if (edge->turn + 1 != target->to_come)
        return wait_for_turn(target, edge);
    if (add(target, edge) < 0 || add_those_waiting(target) < 0)
        return -1;
    return target->to_come == 0;
}

void target_free(struct target *target)
{
    object_release((struct object *)target->node);
    tensor_release(target->leaf);
    tensor_release(target->gradient);
    while (target->waiting)
        waiting_free(waiting_take(target));
}

/* ---- what rules call ---- */

static int send(struct backward *run, int i, struct tensor *gradient, int dim, int64_t start)
{
    struct edge *edge = &run->node->edges[i];
    if (!gradient)
        return -1;
    if (!backward_wants(run, i))
        return 0;
    assert(!edge->sent);
    edge->sent = tensor_retain(gradient);
    edge->part_dim = dim;
    edge->part_start = start;
    return 0;
}

int backward_send(struct backward *run, int i, struct tensor *gradient)
{
    return send(run, i, gradient, -1, 0);
}

int backward_send_part(struct backward *run, int i, struct tensor *gradient, int dim, int64_t start)
{
    return send(run, i, gradient, dim, start);
}

/* Every contribution before a steady one was added by rules that ran before this one's, and none
 * after it is added yet, so the sum is this rule's alone. */
struct tensor *backward_partial(struct backward *run, int i)
{
    const struct edge *edge = &run->node->edges[i];
    struct target *target = &run->plan->target[edge->target];
    if (!backward_wants(run, i) || edge->turn < target->unsteady || !target->gradient)
        return NULL;
    return own_sum(target) == 0 ? target->gradient : NULL;
}

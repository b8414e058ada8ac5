/* dist_device.c - collectives on the memory of devices that a plugin serves.
 *
 * The TCP connections stay in charge of who calls what: headers are exchanged there first, so that
 * a mismatch, or a peer that has left, is the same error that it is on the CPU. The values then go
 * directly from device to device, in the plugin's way (NCCL). Where that cannot be, because its
 * library is missing or two ranks share a device, they go by the host and over TCP.
 *
 * The way is chosen with the group's first collective on such tensors, by all ranks together. */
#include <string.h>

#include "runtime/autograd.h"
#include "runtime/dist_tcp.h"
#include "runtime/ops.h"
#include "runtime/plugin.h"
#include "runtime/scope.h"
#include "runtime/tensor_internal.h"

static const struct dist_backend *backend(void)
{
    return plugin_current()->collectives;
}

/* ---- fences ---- */

int device_fence(struct call *call)
{
    if (call->device.kind == DEVICE_CPU)
        return 0;
    call->fence = backend()->fence(call->device.index);
    return call->fence ? 0 : -1;
}

int device_join(struct call *call)
{
    void *fence = call->fence;
    call->fence = NULL;
    return fence ? backend()->join(call->device.index, fence) : 0;
}

/* ---- errors ---- */

/* fail_with_pending - what was raised breaks the group */
static int fail_with_pending(struct group *group)
{
    struct error *error = error_take();
    mesh_fail(group, error_type_of(error), "rank %d: %s", group->rank, error_message(error));
    error_free(error);
    return -1;
}

/* ---- choosing the way ---- */

enum { UNIT = sizeof(float) }; /* bytes are exchanged as if they were elements of this size */

static int gather_bytes(struct group *group, void *all, const void *mine, size_t bytes)
{
    return tcp_run(group, &(struct call){.kind = CALL_ALL_GATHER,
                                         .count = (int64_t)(bytes / UNIT),
                                         .input = mine,
                                         .output = all});
}

static int broadcast_bytes(struct group *group, void *bytes, size_t n)
{
    return tcp_run(group, &(struct call){.kind = CALL_BROADCAST,
                                         .count = (int64_t)(n / UNIT),
                                         .input = bytes,
                                         .output = bytes});
}

/* everyone_has_its_own - a device that no other rank uses, and the library */
static bool everyone_has_its_own(const char (*identities)[DIST_IDENTITY_BYTES], int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            if (!*identities[i] || (j < i && strcmp(identities[i], identities[j]) == 0))
                return false;
    return n > 1;
}

static int choose_route(struct group *group)
{
    char mine[DIST_IDENTITY_BYTES] = "", all[GROUP_MAX_RANKS][DIST_IDENTITY_BYTES];
    struct link *link = &group->link;
    if (!backend()->available() && backend()->identify(link->device, mine) < 0)
        return fail_with_pending(group);
    if (gather_bytes(group, all, mine, sizeof mine) < 0)
        return -1;
    bool direct = everyone_has_its_own((const char(*)[DIST_IDENTITY_BYTES])all, group->world_size);
    link->route = direct ? ROUTE_DIRECT : ROUTE_BY_HOST;
    return 0;
}

static int connect_directly(struct group *group)
{
    char id[DIST_ID_BYTES] = "";
    if (group->rank == 0 && backend()->new_id(id) < 0)
        return fail_with_pending(group);
    if (broadcast_bytes(group, id, sizeof id) < 0)
        return -1;
    group->link.connection = backend()->connect(group, group->link.device, id);
    return group->link.connection ? 0 : fail_with_pending(group);
}

/* link_make - these exchanges are no collectives of the caller's, and do not count as such */
static int link_make(struct group *group)
{
    struct mesh *mesh = group->mesh;
    uint32_t completed = mesh->completed;
    if (choose_route(group) < 0 ||
        (group->link.route == ROUTE_DIRECT && connect_directly(group) < 0))
        return -1;
    mesh->completed = completed;
    return 0;
}

/* ---- calls ---- */

static int run_directly(struct group *group, const struct call *call)
{
    if (backend()->run(group->link.connection, call) < 0)
        return fail_with_pending(group);
    if (!is_message(call->kind))
        group->mesh->completed++;
    return 0;
}

/* copy_back - AVG, which TCP has not, is a sum until here */
static int copy_back(const struct group *group, const struct call *call, const struct tensor *x)
{
    const struct device_table *table = tensor_table(call->target);
    if (table->transfer(call->target, x) < 0)
        return -1;
    return call->op != DIST_AVG
               ? 0
               : table->unary(UNARY_DIVIDE, call->target, call->target, group->world_size);
}

static int run_by_host(struct group *group, const struct call *call)
{
    SCOPE;
    NO_GRAD;
    struct call here = *call;
    struct tensor *input = call->source ? tensor_to((struct tensor *)call->source, CPU) : NULL;
    struct tensor *output = call->target == call->source ? input : NULL;
    if (call->target && !output)
        output =
            tensor_empty(tensor_ndim(call->target), tensor_shape(call->target), call->dtype, CPU);
    if ((call->source && !input) || (call->target && !output))
        return fail_with_pending(group);
    here.input = input ? tensor_data(input) : NULL;
    here.output = output ? tensor_data(output) : NULL;
    here.op = call->op == DIST_AVG ? DIST_SUM : call->op;
    if (tcp_run(group, &here) < 0)
        return -1;
    return output && copy_back(group, call, output) < 0 ? fail_with_pending(group) : 0;
}

static int check_device(struct group *group, const struct call *call)
{
    struct link *link = &group->link;
    if (link->route == ROUTE_UNKNOWN)
        link->device = call->device.index;
    if (link->device == call->device.index)
        return 0;
    return mesh_fail(
        group, &ValueError,
        "rank %d has cuda:%d for its collectives: they cannot take a tensor on cuda:%d",
        group->rank, link->device, call->device.index);
}

/* A message concerns two ranks only: before the way has been chosen it goes by the host. */
int device_run(struct group *group, const struct call *call)
{
    struct link *link = &group->link;
    if (check_device(group, call) < 0)
        return -1;
    bool chooses = link->route == ROUTE_UNKNOWN && !is_message(call->kind);
    if ((chooses || link->route == ROUTE_DIRECT) && tcp_agree(group, call) < 0)
        return -1;
    if (chooses && link_make(group) < 0)
        return -1;
    return link->route == ROUTE_DIRECT ? run_directly(group, call) : run_by_host(group, call);
}

void device_close(struct group *group)
{
    if (group->link.connection)
        backend()->close(group->link.connection);
}

/* ---- listening to the peers while a device works ---- */

int group_listen(struct group *group)
{
    int heard = NO_PEER;
    if (pthread_mutex_trylock(&group->mutex) != 0)
        return NO_PEER;
    if (!group->busy && (group->failure || mesh_hear_all(group) < 0))
        heard = GROUP_BROKEN;
    else if (!group->busy)
        heard = mesh_absent(group);
    pthread_mutex_unlock(&group->mutex);
    return heard;
}

/* Whoever is in a call of the group meanwhile finds out by itself. */
void group_give_up(struct group *group, const struct error_type *type, const char *text)
{
    pthread_mutex_lock(&group->mutex);
    if (!group->busy)
        mesh_fail(group, type, "%s", text);
    pthread_mutex_unlock(&group->mutex);
}

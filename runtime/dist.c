#include "runtime/dist.h"

#include <stdatomic.h>
#include <string.h>

#include "runtime/dist_internal.h"
#include "runtime/dist_tcp.h"
#include "runtime/wait_limit.h"

/* The process's default group; set by whoever starts the ranks. */
static _Atomic(struct group *) default_group;

/* ---- checks ---- */

static int check_tensor(const struct tensor *x, const char *caller)
{
    if (!tensor_is_contiguous(x))
        return raise_error(ValueError, "%s: the tensor must be contiguous", caller);
    return 0;
}

static int check_op(enum dist_op op, const struct tensor *x, const char *caller)
{
    if (op == DIST_AVG && tensor_device(x).kind == DEVICE_CPU)
        return raise_error(ValueError,
                           "%s: the TCP backend has no AVG (nor has gloo): sum, then divide by "
                           "dist_world_size()",
                           caller);
    if (op < DIST_SUM || op > DIST_AVG)
        return raise_error(ValueError, "%s: unknown operation %d", caller, (int)op);
    return 0;
}

static int check_rank(const struct group *group, int rank, const char *caller)
{
    if (rank < 0 || rank >= group->world_size)
        return raise_error(ValueError, "%s: there is no rank %d among %d", caller, rank,
                           group->world_size);
    return 0;
}

static int check_other(const struct group *group, int rank, const char *caller)
{
    if (rank == group->rank)
        return raise_error(ValueError, "%s: rank %d is this rank itself", caller, rank);
    return check_rank(group, rank, caller);
}

/* check_shares - `whole` holds one tensor like `share` for every rank */
static int check_shares(const struct group *group, const struct tensor *whole,
                        const struct tensor *share, const char *caller)
{
    if (check_tensor(whole, caller) < 0 || check_tensor(share, caller) < 0)
        return -1;
    if (tensor_dtype(whole) != tensor_dtype(share))
        return raise_error(TypeError, "%s: input and output must have one dtype, got %s and %s",
                           caller, dtype_name(tensor_dtype(whole)),
                           dtype_name(tensor_dtype(share)));
    if (!device_equal(tensor_device(whole), tensor_device(share)))
        return raise_error(RuntimeError, "%s: input and output are on %s and %s", caller,
                           device_name(tensor_device(whole)), device_name(tensor_device(share)));
    if (tensor_numel(whole) != group->world_size * tensor_numel(share))
        return raise_error(ValueError,
                           "%s: %d ranks with %lld elements each make %lld, but the tensor for all "
                           "of them has %lld",
                           caller, group->world_size, (long long)tensor_numel(share),
                           (long long)(group->world_size * tensor_numel(share)),
                           (long long)tensor_numel(whole));
    return 0;
}

/* call_on - a call on tensors; the one place where their memory is looked up */
static struct call call_on(enum call_kind kind, const struct tensor *input, struct tensor *output)
{
    const struct tensor *share = output && kind != CALL_ALL_GATHER ? output : input;
    return (struct call){
        .kind = kind,
        .dtype = tensor_dtype(share),
        .count = tensor_numel(share),
        .device = tensor_device(share),
        .input = input ? tensor_data(input) : NULL,
        .output = output ? tensor_data(output) : NULL,
        .source = input,
        .target = output,
    };
}

/* ---- the collectives on a group ---- */

static int prepare_all_reduce(struct group *group, struct tensor *x, enum dist_op op,
                              struct call *call)
{
    if (!group || !x || check_tensor(x, "all_reduce") < 0 || check_op(op, x, "all_reduce") < 0)
        return -1;
    *call = call_on(CALL_ALL_REDUCE, x, x);
    call->op = op;
    return 0;
}

int group_all_reduce(struct group *group, struct tensor *x, enum dist_op op)
{
    struct call call;
    return prepare_all_reduce(group, x, op, &call) < 0 ? -1 : group_run(group, &call);
}

struct work *group_all_reduce_async(struct group *group, struct tensor *x, enum dist_op op)
{
    struct call call;
    return prepare_all_reduce(group, x, op, &call) < 0 ? NULL : group_start(group, &call);
}

int group_broadcast(struct group *group, struct tensor *x, int root)
{
    if (!group || !x || check_tensor(x, "broadcast") < 0 ||
        check_rank(group, root, "broadcast") < 0)
        return -1;
    struct call call = call_on(CALL_BROADCAST, x, x);
    call.peer = root;
    return group_run(group, &call);
}

int group_all_gather(struct group *group, struct tensor *output, const struct tensor *input)
{
    if (!group || !output || !input || check_shares(group, output, input, "all_gather") < 0)
        return -1;
    struct call call = call_on(CALL_ALL_GATHER, input, output);
    return group_run(group, &call);
}

int group_reduce_scatter(struct group *group, struct tensor *output, const struct tensor *input,
                         enum dist_op op)
{
    if (!group || !output || !input || check_shares(group, input, output, "reduce_scatter") < 0 ||
        check_op(op, input, "reduce_scatter") < 0)
        return -1;
    struct call call = call_on(CALL_REDUCE_SCATTER, input, output);
    call.op = op;
    return group_run(group, &call);
}

int group_barrier(struct group *group)
{
    return group ? group_run(group, &(struct call){.kind = CALL_BARRIER}) : -1;
}

int group_send(struct group *group, const struct tensor *x, int to)
{
    if (!group || !x || check_tensor(x, "send") < 0 || check_other(group, to, "send") < 0)
        return -1;
    struct call call = call_on(CALL_SEND, x, NULL);
    call.peer = to;
    return group_run(group, &call);
}

int group_recv(struct group *group, struct tensor *x, int from)
{
    if (!group || !x || check_tensor(x, "recv") < 0 || check_other(group, from, "recv") < 0)
        return -1;
    struct call call = call_on(CALL_RECV, NULL, x);
    call.peer = from;
    return group_run(group, &call);
}

int group_rank(const struct group *group)
{
    return group->rank;
}

int group_world_size(const struct group *group)
{
    return group->world_size;
}

/* ---- making groups ---- */

static int check_options(const struct group_options *options)
{
    int size = options->world_size;
    if (size < 1 || size > GROUP_MAX_RANKS)
        return raise_error(ValueError, "world_size must be 1 to %d, got %d", GROUP_MAX_RANKS, size);
    if (options->rank < 0 || options->rank >= size)
        return raise_error(ValueError, "rank must be 0 to %d, got %d", size - 1, options->rank);
    if (!(options->timeout_s >= 0))
        return raise_error(ValueError, "timeout_s must not be negative, got %g",
                           options->timeout_s);
    if (size > 1 && !options->file && !options->addresses)
        return raise_error(ValueError, "%d ranks need a file or addresses to find each other",
                           size);
    return 0;
}

struct group *group_connect(const struct group_options *options)
{
    if (check_options(options) < 0)
        return NULL;
    double timeout = options->timeout_s > 0 ? options->timeout_s : wait_limit();
    struct group *group = group_new(options->rank, options->world_size, timeout);
    if (group && tcp_connect(group, options) < 0) {
        object_release(&group->object);
        return NULL;
    }
    return group;
}

void group_close(struct group *group)
{
    if (!group)
        return;
    struct group *expected = group;
    atomic_compare_exchange_strong(&default_group, &expected, NULL);
    group_drain(group);
    device_close(group);
    mesh_close(group->mesh);
    object_release(&group->object);
}

/* ---- the default group ---- */

void dist_set_default(struct group *group)
{
    atomic_store(&default_group, group);
}

struct group *dist_default(void)
{
    return atomic_load(&default_group);
}

static struct group *need_default(void)
{
    struct group *group = dist_default();
    return group ? group : raise_null(RuntimeError, "no process group: this process is not a rank");
}

int dist_rank(void)
{
    struct group *group = dist_default();
    return group ? group->rank : 0;
}

int dist_world_size(void)
{
    struct group *group = dist_default();
    return group ? group->world_size : 1;
}

int dist_all_reduce(struct tensor *x, enum dist_op op)
{
    return x ? group_all_reduce(need_default(), x, op) : -1;
}

struct work *dist_all_reduce_async(struct tensor *x, enum dist_op op)
{
    return x ? group_all_reduce_async(need_default(), x, op) : NULL;
}

int dist_broadcast(struct tensor *x, int root)
{
    return x ? group_broadcast(need_default(), x, root) : -1;
}

int dist_all_gather(struct tensor *output, const struct tensor *input)
{
    return output && input ? group_all_gather(need_default(), output, input) : -1;
}

int dist_reduce_scatter(struct tensor *output, const struct tensor *input, enum dist_op op)
{
    return output && input ? group_reduce_scatter(need_default(), output, input, op) : -1;
}

int dist_barrier(void)
{
    return group_barrier(need_default());
}

int dist_send(const struct tensor *x, int to)
{
    return x ? group_send(need_default(), x, to) : -1;
}

int dist_recv(struct tensor *x, int from)
{
    return x ? group_recv(need_default(), x, from) : -1;
}

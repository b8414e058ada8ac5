/* sim_nccl.c - NCCL by the runtime's own TCP groups, whose errors it hands on.
 *
 * A call is carried out at once, in the calling thread, so it waits for the other ranks where NCCL
 * would only queue it. The ranks first tell each other when their streams are ready; the work
 * begins, for all of them, when the last one is. */
#include "nccl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/dist_internal.h"
#include "runtime/half.h"
#include "runtime/sim/sim_internal.h"
#include "runtime/sim/sim_kernel.h"
#include "runtime/sim/sim_model.h"

enum { TEXT_BYTES = 400 };

struct ncclComm {
    struct group *group;
    int rank, ranks, device;
    ncclResult_t error; /* the first; then the communicator is unusable */
    char text[TEXT_BYTES];
};

struct operation {
    enum call_kind kind;
    const void *input;
    void *output;
    size_t count; /* of one rank's share for reduce-scatter and all-gather */
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer; /* or root */
    ncclComm_t comm;
    cudaStream_t stream;
};

static _Thread_local char last_text[TEXT_BYTES];

/* ---- errors ---- */

static ncclResult_t fail(ncclComm_t comm, ncclResult_t result, const char *text)
{
    snprintf(last_text, sizeof last_text, "%s", text);
    if (comm && comm->error == ncclSuccess) {
        comm->error = result;
        snprintf(comm->text, sizeof comm->text, "%s", text);
    }
    return result;
}

static ncclResult_t fail_by_cuda(ncclComm_t comm)
{
    return fail(comm, ncclUnhandledCudaError, cudaGetErrorString(cudaPeekAtLastError()));
}

/* fail_by_runtime - for the runtime's pending error, which is cleared */
static ncclResult_t fail_by_runtime(ncclComm_t comm)
{
    ncclResult_t result = error_is(&DistError)      ? ncclRemoteError
                          : error_is(&TimeoutError) ? ncclSystemError
                                                    : ncclInternalError;
    (void)fail(comm, result, error_message(error_pending()));
    error_clear();
    return result;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error",
        [ncclSystemError] = "unhandled system error",
        [ncclInternalError] = "internal error",
        [ncclInvalidArgument] = "invalid argument",
        [ncclInvalidUsage] = "invalid usage",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress",
    };
    return result < sizeof texts / sizeof texts[0] ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return comm && comm->error ? comm->text : last_text;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* ---- communicators ---- */

/* The id is the path of the file by which the ranks find each other. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    uint64_t number[2];
    if (getentropy(number, sizeof number) < 0)
        return fail(NULL, ncclSystemError, "no random numbers for a unique id");
    const char *folder = getenv("TMPDIR");
    size_t room = sizeof id->internal - sizeof "/sim-nccl-" - 32;
    if (!folder || !*folder || strlen(folder) > room)
        folder = "/tmp";
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/sim-nccl-%016" PRIx64 "%016" PRIx64, folder,
             number[0], number[1]);
    return ncclSuccess;
}

/* NCCL refuses two ranks on one GPU. */
static ncclResult_t devices_check(ncclComm_t comm)
{
    double mine = comm->device, devices[GROUP_MAX_RANKS];
    if (group_run(comm->group, &(struct call){.kind = CALL_ALL_GATHER,
                                              .dtype = FLOAT64,
                                              .count = 1,
                                              .input = &mine,
                                              .output = devices}) < 0)
        return fail_by_runtime(comm);
    for (int rank = 0; rank < comm->ranks; rank++)
        if (rank != comm->rank && devices[rank] == mine)
            return fail(comm, ncclInvalidUsage, "Duplicate GPU detected: two ranks use one device");
    return ncclSuccess;
}

static ncclResult_t comm_connect(ncclComm_t comm, const ncclUniqueId *id)
{
    comm->group = group_connect(&(struct group_options){
        .rank = comm->rank, .world_size = comm->ranks, .file = id->internal});
    return comm->group ? devices_check(comm) : fail_by_runtime(comm);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    (void)config; /* it is made when this returns, blocking or not */
    if (ranks < 1 || ranks > GROUP_MAX_RANKS || rank < 0 || rank >= ranks ||
        !memchr(id.internal, 0, sizeof id.internal))
        return fail(NULL, ncclInvalidArgument, "the rank, the number of ranks or the id is wrong");
    if (sim_entered(sim_host_costs.call))
        return fail_by_cuda(NULL);
    struct ncclComm *made = calloc(1, sizeof *made);
    if (!made)
        return fail(NULL, ncclSystemError, "out of host memory for a communicator");
    *made = (struct ncclComm){.rank = rank, .ranks = ranks, .device = sim_current_device()};
    double now = sim_clock();
    struct error *former = error_take();
    ncclResult_t result = comm_connect(made, &id);
    (void)error_raise(former);
    sim_host_return(now);
    if (result == ncclSuccess)
        *comm = made;
    else
        (void)ncclCommDestroy(made);
    return result;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm)
        group_close(comm->group);
    free(comm);
    return ncclSuccess;
}

/* In the thread that uses the communicator: no operation of it can be under way. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = comm->error;
    return ncclSuccess;
}

/* ---- what an operation is ---- */

static size_t element_size(ncclDataType_t type)
{
    return type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : type == ncclFloat16 ? 2 : 0;
}

static enum dtype dtype_of(ncclDataType_t type)
{
    return type == ncclFloat64 ? FLOAT64 : type == ncclFloat32 ? FLOAT32 : FLOAT16;
}

/* Bytes that one side of the operation holds. */
static size_t input_bytes(const struct operation *o)
{
    size_t shares = o->kind == CALL_REDUCE_SCATTER ? (size_t)o->comm->ranks : 1;
    bool has_none = o->kind == CALL_RECV || (o->kind == CALL_BROADCAST && o->comm->rank != o->peer);
    return has_none ? 0 : shares * o->count * element_size(o->type);
}

static size_t output_bytes(const struct operation *o)
{
    size_t shares = o->kind == CALL_ALL_GATHER ? (size_t)o->comm->ranks : 1;
    return o->kind == CALL_SEND ? 0 : shares * o->count * element_size(o->type);
}

/* Bytes that the busiest rank sends, in a ring. source: nccl-tests, doc/PERFORMANCE.md */
static double sent_bytes(const struct operation *o)
{
    double ranks = o->comm->ranks, share = (double)(o->count * element_size(o->type));
    switch (o->kind) {
    case CALL_ALL_REDUCE:
        return 2 * (ranks - 1) / ranks * share;
    case CALL_REDUCE_SCATTER:
    case CALL_ALL_GATHER:
        return (ranks - 1) * share;
    default:
        return ranks > 1 ? share : 0;
    }
}

/* ---- running one ---- */

/* latest - the latest of the participants' times; messages have two participants, of whom the lower
 * rank speaks first */
static int latest(const struct operation *o, double *time)
{
    struct group *group = o->comm->group;
    double mine = *time, theirs;
    struct call say = {
        .kind = CALL_SEND, .dtype = FLOAT64, .count = 1, .peer = o->peer, .input = &mine};
    struct call hear = {
        .kind = CALL_RECV, .dtype = FLOAT64, .count = 1, .peer = o->peer, .output = &theirs};
    if (!is_message(o->kind))
        return group_run(group, &(struct call){.kind = CALL_ALL_REDUCE,
                                               .dtype = FLOAT64,
                                               .op = DIST_MAX,
                                               .count = 1,
                                               .input = time,
                                               .output = time});
    bool first = o->comm->rank < o->peer;
    if (group_run(group, first ? &say : &hear) < 0 || group_run(group, first ? &hear : &say) < 0)
        return -1;
    *time = sim_max(mine, theirs);
    return 0;
}

static void divide(void *values, const struct operation *o)
{
    double ranks = o->comm->ranks;
    for (size_t i = 0; i < o->count; i++) {
        if (o->type == ncclFloat64)
            ((double *)values)[i] /= ranks;
        else if (o->type == ncclFloat32)
            ((float *)values)[i] /= (float)ranks;
        else
            ((uint16_t *)values)[i] =
                half_from_double(half_to_float(((uint16_t *)values)[i]) / ranks);
    }
}

/* operation_check - a call that makes no sense leaves the communicator as it is */
static ncclResult_t operation_check(const struct operation *o)
{
    if (element_size(o->type) == 0)
        return fail(NULL, ncclInvalidArgument,
                    "only ncclFloat16, ncclFloat32 and ncclFloat64 are simulated");
    if (o->op == ncclProd)
        return fail(NULL, ncclInvalidArgument, "ncclProd is not simulated");
    if (o->peer < 0 || o->peer >= o->comm->ranks ||
        (is_message(o->kind) && o->peer == o->comm->rank))
        return fail(NULL, ncclInvalidArgument, "there is no such other rank");
    if (sim_stream_check(o->stream, "a collective"))
        return fail_by_cuda(NULL);
    if (o->stream->device != o->comm->device)
        return fail(NULL, ncclInvalidUsage, "the stream is another device's");
    return ncclSuccess;
}

/* memory_find - errors: ncclUnhandledCudaError, and the device is broken */
static ncclResult_t memory_find(const struct operation *o, const void *address, size_t bytes,
                                void **view)
{
    char text[160];
    *view = NULL;
    if (bytes == 0 || sim_find(o->comm->device, address, bytes, view) <= SIM_PINNED_MEMORY)
        return ncclSuccess;
    sim_fail_for_good("a collective on cuda:%d was given %zu bytes of %s", o->comm->device, bytes,
                      address ? sim_describe_address(address, text, sizeof text) : "NULL");
    return fail_by_cuda(o->comm);
}

static int carry_out(const struct operation *o, const void *input, void *output)
{
    static const enum dist_op ops[] = {
        [ncclSum] = DIST_SUM, [ncclMax] = DIST_MAX, [ncclMin] = DIST_MIN, [ncclAvg] = DIST_SUM};
    bool at_root = o->kind == CALL_BROADCAST && o->comm->rank == o->peer;
    if (at_root && output != input && o->count)
        memcpy(output, input, output_bytes(o));
    struct call call = {.kind = o->kind,
                        .dtype = dtype_of(o->type),
                        .op = ops[o->op],
                        .peer = o->peer,
                        .count = (int64_t)o->count,
                        .input = input,
                        .output = output};
    if (o->kind == CALL_BROADCAST)
        call.input = output;
    if (group_run(o->comm->group, &call) < 0)
        return -1;
    if (o->op == ncclAvg)
        divide(output, o);
    return 0;
}

static ncclResult_t operation_run(const struct operation *o)
{
    void *input, *output;
    if (!o->comm)
        return fail(NULL, ncclInvalidArgument, "the communicator is NULL");
    ncclResult_t result = o->comm->error;
    sim_operation_begin();
    if (sim_entered(sim_host_costs.launch))
        return fail_by_cuda(o->comm);
    if (result || (result = operation_check(o)) ||
        (result = memory_find(o, o->input, input_bytes(o), &input)) ||
        (result = memory_find(o, o->output, output_bytes(o), &output)))
        return result;
    double now = sim_clock(), start = sim_stream_ready(o->stream);
    struct error *former = error_take();
    if (latest(o, &start) < 0 || carry_out(o, input, output) < 0)
        result = fail_by_runtime(o->comm);
    (void)error_raise(former);
    sim_host_return(now);
    double end = start + sim_collective_seconds(sent_bytes(o));
    sim_stream_end_at(o->stream, end);
    sim_operation_end(o->stream, end);
    return result;
}

/* ---- calls ---- */

ncclResult_t ncclAllReduce(const void *input, void *output, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return operation_run(
        &(struct operation){CALL_ALL_REDUCE, input, output, count, type, op, 0, comm, stream});
}

ncclResult_t ncclReduceScatter(const void *input, void *output, size_t output_count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    return operation_run(&(struct operation){CALL_REDUCE_SCATTER, input, output, output_count, type,
                                             op, 0, comm, stream});
}

ncclResult_t ncclAllGather(const void *input, void *output, size_t input_count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return operation_run(&(struct operation){CALL_ALL_GATHER, input, output, input_count, type,
                                             ncclSum, 0, comm, stream});
}

ncclResult_t ncclBroadcast(const void *input, void *output, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return operation_run(&(struct operation){CALL_BROADCAST, input, output, count, type, ncclSum,
                                             root, comm, stream});
}

ncclResult_t ncclSend(const void *input, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return operation_run(
        &(struct operation){CALL_SEND, input, NULL, count, type, ncclSum, peer, comm, stream});
}

ncclResult_t ncclRecv(void *output, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return operation_run(
        &(struct operation){CALL_RECV, NULL, output, count, type, ncclSum, peer, comm, stream});
}

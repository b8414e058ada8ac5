/* nccl.c - collectives on the memory of GPUs, in the device's communication stream.
 *
 * NCCL is loaded when it is first needed: without it a group's values go by the host. All its calls
 * return at once; what they ask for cannot be called back, so the host, wherever it waits for the
 * GPU, watches the peers (nccl_watch) and aborts what would never end. */
#include "runtime/clock.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/dist_internal.h"
#include "runtime/plugin.h"

#ifdef HAVE_NCCL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- connections ---- */

struct connection {
    struct connection *next;
    struct group *group;
    ncclComm_t comm;
    int device;
    cudaEvent_t last; /* the end of the youngest call */
    bool under_way;   /* it has not come */
    bool aborted;
    double since;          /* when that call was made */
    double looked, missed; /* when the peers were last listened to; since when one is missing */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and what is in it */
static struct connection *connections;
static atomic_int calls_under_way; /* connections of which something is */

static const char *result_name(ncclResult_t result)
{
    static const char *const names[] = {
        "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
        "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};
    return (unsigned)result < sizeof names / sizeof *names ? names[result] : "ncclResult";
}

/* describe - "ncclRemoteError: remote process exited ... (ncclAllReduce): what it last said" */
static const char *describe(char text[FAILURE_BYTES], ncclResult_t result, ncclComm_t comm,
                            const char *what)
{
    const char *said = nccl.ncclGetLastError(comm);
    snprintf(text, FAILURE_BYTES, "%s: %s (%s)%s%s", result_name(result),
             nccl.ncclGetErrorString(result), what, said && *said ? ": " : "", said ? said : "");
    return text;
}

static int check(ncclResult_t result, ncclComm_t comm, const char *what)
{
    char text[FAILURE_BYTES];
    if (result == ncclSuccess)
        return 0;
    return raise_error(RuntimeError, "%s", describe(text, result, comm, what));
}

/* settle - wait for the host's part of a call, as long as the group would wait for a peer */
static int settle(struct connection *connection, ncclResult_t result, const char *what)
{
    double deadline = seconds_now() + connection->group->timeout_s;
    while (result == ncclInProgress) {
        ncclResult_t state;
        if (seconds_now() > deadline)
            return raise_error(TimeoutError, "%s took longer than %g s", what,
                               connection->group->timeout_s);
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
        if (check(nccl.ncclCommGetAsyncError(connection->comm, &state), connection->comm, what) < 0)
            return -1;
        result = state;
    }
    return check(result, connection->comm, what);
}

/* ---- connecting ---- */

/* The host and the place on its PCI bus. */
static int identify(int device, char text[DIST_IDENTITY_BYTES])
{
    struct cudaDeviceProp properties;
    char host[64] = "";
    if (CUDA_TRY(cudaGetDeviceProperties(&properties, device)) < 0)
        return -1;
    gethostname(host, sizeof host - 1);
    snprintf(text, DIST_IDENTITY_BYTES, "%s %x:%x:%x", host, (unsigned)properties.pciDomainID,
             (unsigned)properties.pciBusID, (unsigned)properties.pciDeviceID);
    return 0;
}

static int new_id(char id[DIST_ID_BYTES])
{
    ncclUniqueId unique;
    _Static_assert(sizeof unique == DIST_ID_BYTES, "an identifier of NCCL fits");
    if (check(nccl.ncclGetUniqueId(&unique), NULL, "ncclGetUniqueId") < 0)
        return -1;
    memcpy(id, &unique, sizeof unique);
    return 0;
}

static int start(struct connection *connection, const char id[DIST_ID_BYTES])
{
    const struct group *group = connection->group;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    memcpy(&unique, id, sizeof unique);
    config.blocking = 0;
    if (!cuda_enter(connection->device) ||
        CUDA_TRY(cudaEventCreateWithFlags(&connection->last, cudaEventDisableTiming)) < 0)
        return -1;
    return settle(connection,
                  nccl.ncclCommInitRankConfig(&connection->comm, group->world_size, unique,
                                              group->rank, &config),
                  "ncclCommInitRankConfig");
}

static void destroy(struct connection *connection)
{
    if (connection->comm && !connection->aborted)
        nccl.ncclCommAbort(connection->comm); /* ncclCommDestroy would wait for the peers */
    if (connection->last)
        cudaEventDestroy(connection->last);
    free(connection);
}

static void *connect_ranks(struct group *group, int device, const char id[DIST_ID_BYTES])
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return raise_null(MemoryError, "out of memory for a connection between GPUs");
    connection->group = group;
    connection->device = device;
    if (start(connection, id) < 0) {
        destroy(connection);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    connection->next = connections;
    connections = connection;
    pthread_mutex_unlock(&lock);
    return connection;
}

/* ---- calls ---- */

static ncclDataType_t type_of(enum dtype dtype)
{
    return dtype == FLOAT32 ? ncclFloat32 : dtype == FLOAT64 ? ncclFloat64 : ncclFloat16;
}

static ncclRedOp_t operation_of(enum dist_op op)
{
    static const ncclRedOp_t operations[] = {
        [DIST_SUM] = ncclSum, [DIST_MIN] = ncclMin, [DIST_MAX] = ncclMax, [DIST_AVG] = ncclAvg};
    return operations[op];
}

static const char *function_of(enum call_kind kind)
{
    static const char *const names[CALL_KINDS] = {[CALL_ALL_REDUCE] = "ncclAllReduce",
                                                  [CALL_REDUCE_SCATTER] = "ncclReduceScatter",
                                                  [CALL_ALL_GATHER] = "ncclAllGather",
                                                  [CALL_BROADCAST] = "ncclBroadcast",
                                                  [CALL_SEND] = "ncclSend",
                                                  [CALL_RECV] = "ncclRecv"};
    return names[kind];
}

static ncclResult_t ask(ncclComm_t comm, const struct call *call, cudaStream_t stream)
{
    const size_t count = (size_t)call->count;
    const ncclDataType_t type = type_of(call->dtype);
    switch (call->kind) {
    case CALL_ALL_REDUCE:
        return nccl.ncclAllReduce(call->input, call->output, count, type, operation_of(call->op),
                                  comm, stream);
    case CALL_REDUCE_SCATTER:
        return nccl.ncclReduceScatter(call->input, call->output, count, type,
                                      operation_of(call->op), comm, stream);
    case CALL_ALL_GATHER:
        return nccl.ncclAllGather(call->input, call->output, count, type, comm, stream);
    case CALL_BROADCAST:
        return nccl.ncclBroadcast(call->input, call->output, count, type, call->peer, comm, stream);
    case CALL_SEND:
        return nccl.ncclSend(call->input, count, type, call->peer, comm, stream);
    case CALL_RECV:
        return nccl.ncclRecv(call->output, count, type, call->peer, comm, stream);
    case CALL_BARRIER:
        break; /* has no tensor, so it never comes here */
    }
    return ncclInvalidArgument;
}

/* note_call - from now on the host's waiting is watched */
static int note_call(struct connection *connection, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    int status = CUDA_TRY(cudaEventRecord(connection->last, stream));
    if (status == 0 && !connection->under_way) {
        connection->under_way = true;
        atomic_fetch_add(&calls_under_way, 1);
    }
    connection->since = seconds_now();
    connection->missed = 0;
    pthread_mutex_unlock(&lock);
    return status;
}

static int run(void *connection_, const struct call *call)
{
    struct connection *connection = connection_;
    if (connection->aborted)
        return raise_error(DistError, "the connection between the GPUs was given up");
    struct cuda_device *device = cuda_enter(connection->device);
    if (!device || CUDA_TRY(cudaStreamWaitEvent(device->communicate, call->fence, 0)) < 0 ||
        settle(connection, ask(connection->comm, call, device->communicate),
               function_of(call->kind)) < 0 ||
        CUDA_TRY(cudaEventRecord(call->fence, device->communicate)) < 0)
        return -1;
    return note_call(connection, device->communicate);
}

/* ---- watching ---- */

enum { LOOK_MS = 5, GRACE_MS = 1000 }; /* what is under way when a peer leaves may still end */

static void ended(struct connection *connection)
{
    connection->under_way = false;
    atomic_fetch_sub(&calls_under_way, 1);
}

/* give_up - what waits for the connection's calls goes on, over memory that means nothing */
static int give_up(struct connection *connection, const struct error_type *type, const char *text)
{
    group_give_up(connection->group, type, text);
    nccl.ncclCommAbort(connection->comm);
    connection->aborted = true;
    ended(connection);
    error_set(type, __FILE__, __LINE__, "%s", text);
    return -1;
}

/* missing - what to say of a peer that has left, once there is no hope */
static bool missing(struct connection *connection, double now, char text[FAILURE_BYTES])
{
    int peer = group_listen(connection->group);
    if (peer == NO_PEER)
        return false;
    if (connection->missed == 0)
        connection->missed = now;
    if (now - connection->missed < 1e-3 * GRACE_MS)
        return false;
    if (peer == GROUP_BROKEN)
        snprintf(text, FAILURE_BYTES, "%s", connection->group->failure_text);
    else
        snprintf(text, FAILURE_BYTES,
                 "rank %d left the group while the GPU of rank %d was in a collective with it",
                 peer, connection->group->rank);
    return true;
}

/* look - at a connection of which something is under way. errors: -1, it was given up */
static int look(struct connection *connection, double now)
{
    char text[FAILURE_BYTES];
    const struct group *group = connection->group;
    ncclResult_t result, state = ncclSuccess;
    connection->looked = now;
    result = nccl.ncclCommGetAsyncError(connection->comm, &state);
    result = result == ncclSuccess ? state : result;
    if (result != ncclSuccess && result != ncclInProgress)
        return give_up(connection, &DistError,
                       describe(text, result, connection->comm, "a collective on the GPUs"));
    if (now - connection->since > group->timeout_s) {
        snprintf(text, sizeof text, "rank %d waited %g s for a collective on the GPUs", group->rank,
                 group->timeout_s);
        return give_up(connection, &TimeoutError, text);
    }
    return missing(connection, now, text) ? give_up(connection, &DistError, text) : 0;
}

/* Under a virtual clock what was asked for has been done, or has failed, already. */
int nccl_watch(bool *under_way)
{
    int status = 0;
    *under_way = false;
    if (atomic_load(&calls_under_way) == 0 || clock_is_virtual())
        return 0;
    pthread_mutex_lock(&lock);
    double now = seconds_now();
    for (struct connection *c = connections; c && status == 0; c = c->next) {
        if (!c->under_way)
            continue;
        if (cudaEventQuery(c->last) != cudaErrorNotReady)
            ended(c);
        else if (now - c->looked >= 1e-3 * LOOK_MS)
            status = look(c, now);
        *under_way = *under_way || c->under_way;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- closing ---- */

static void unlink_connection(struct connection *connection)
{
    pthread_mutex_lock(&lock);
    struct connection **link = &connections;
    while (*link != connection)
        link = &(*link)->next;
    *link = connection->next;
    if (connection->under_way)
        ended(connection);
    pthread_mutex_unlock(&lock);
}

/* The peers may still need this rank's part of what is under way. */
static void close_connection(void *connection_)
{
    struct connection *connection = connection_;
    struct error *pending = error_take();
    if (!connection->aborted)
        (void)order_wait(connection->last);
    error_clear();
    error_raise(pending);
    unlink_connection(connection);
    destroy(connection);
}

const struct dist_backend nccl_backend = {
    .available = nccl_available,
    .version = nccl_version,
    .identify = identify,
    .new_id = new_id,
    .connect = connect_ranks,
    .close = close_connection,
    .run = run,
    .fence = order_fence,
    .join = order_join,
};

#else

const struct dist_backend nccl_backend = {
    .available = nccl_available,
    .version = nccl_version,
    .fence = order_fence,
    .join = order_join,
};

int nccl_watch(bool *under_way)
{
    *under_way = false;
    return 0;
}

#endif

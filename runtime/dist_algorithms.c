/* dist_algorithms.c - what each kind of call sends to whom.
 *
 * All of them are one exchange with every peer, in which values take at most two hops:
 *
 *     first parts    values on their way to the rank that needs or reduces them
 *     second parts   finished values, from the rank that has them to the others
 *
 *     all_reduce      small: everybody's values to everybody, reduced everywhere (one hop)
 *                     large: rank p reduces the p-th chunk, and sends its pieces to all as they
 *                     are done (reduce-scatter and all-gather, overlapped piece by piece)
 *     reduce_scatter  the first hop of that
 *     all_gather      the second
 *     broadcast       small: from the root to everybody
 *                     large: a chunk to each rank, which passes it on to the others
 *     barrier         headers only
 *
 * Each rank sends 2 (n-1)/n of the bytes of a large all_reduce, the least possible. Values are
 * reduced in rank order by whoever reduces them: the result does not depend on the algorithm, is
 * the same to the bit on every rank, and a FLOAT16 sum is rounded once. */
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/dist_reduce.h"
#include "runtime/dist_tcp.h"

enum {
    RING_PIECES = 8,           /* pieces of a peer's values that may wait to be reduced */
    ONE_HOP_BYTES = 64 * 1024, /* up to here an all_reduce takes one hop */
    WHOLE_BYTES = 64 * 1024,   /* up to here a broadcast comes whole from its root */
    CHUNK_ALIGNMENT = 64,      /* elements */
};

/* A rank's chunk of the values, in bytes. */
struct chunk {
    size_t begin, bytes;
};

static struct chunk chunk_of(const struct call *call, int rank, int world_size)
{
    int64_t lines = (call->count + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT;
    int64_t begin = lines * rank / world_size * CHUNK_ALIGNMENT;
    int64_t end = lines * (rank + 1) / world_size * CHUNK_ALIGNMENT;
    begin = begin < call->count ? begin : call->count;
    end = end < call->count ? end : call->count;
    size_t size = (size_t)dtype_size(call->dtype);
    return (struct chunk){(size_t)begin * size, (size_t)(end - begin) * size};
}

static size_t call_bytes(const struct call *call)
{
    return (size_t)call->count * (size_t)dtype_size(call->dtype);
}

/* part_of - bytes that are all there (open) from the start, or none of them */
static struct part part_of(const void *data, size_t offset, size_t bytes, bool open)
{
    return (struct part){offset > 0 ? (char *)data + offset : (char *)data, bytes, open ? bytes : 0,
                         0, 0};
}

/* ---- exchanges ---- */

static struct header header_of(const struct call *call, uint32_t number)
{
    struct header header;
    memset(&header, 0, sizeof header); /* headers are compared byte by byte */
    header.count = call->count;
    header.number = number;
    header.kind = (uint8_t)call->kind;
    header.dtype = (uint8_t)call->dtype;
    header.op = (uint8_t)call->op;
    header.peer = (uint8_t)call->peer;
    header.device = (uint8_t)call->device.kind;
    header.clock = clock_now();
    return header;
}

static void lane_begin(struct exchange *exchange, int peer)
{
    struct lane *lane = &exchange->lanes[exchange->lane_count++];
    *lane = (struct lane){.peer = peer};
    lane->out.header = &exchange->header;
    lane->in.header = &lane->theirs;
}

static void exchange_begin(struct exchange *exchange, struct group *group, const struct call *call)
{
    struct mesh *mesh = group->mesh;
    exchange->group = group;
    exchange->mesh = mesh;
    exchange->lane_count = 0;
    exchange->step = NULL;
    if (is_message(call->kind)) {
        exchange->header = header_of(call, ++mesh->peers[call->peer].messages);
        lane_begin(exchange, call->peer);
        return;
    }
    exchange->header = header_of(call, mesh->completed + 1);
    for (int i = 1; i < group->world_size; i++) /* each rank begins with the one after it */
        lane_begin(exchange, (group->rank + i) % group->world_size);
}

/* ---- reducing what comes in ---- */

/* reduce_piece - the next piece of everybody's values, in rank order, to its place in the output */
static void reduce_piece(struct exchange *exchange, size_t bytes)
{
    const void *sources[GROUP_MAX_RANKS];
    const int rank = exchange->group->rank;
    sources[rank] = exchange->own + exchange->done;
    for (int i = 0; i < exchange->lane_count; i++) {
        const struct part *part = &exchange->lanes[i].in.first;
        sources[exchange->lanes[i].peer] = part->data + exchange->done % part->ring;
    }
    reduce_values(exchange->output + exchange->done, sources, exchange->lane_count + 1,
                  (int64_t)bytes / dtype_size(exchange->dtype), exchange->dtype, exchange->op);
}

/* reducible - how many bytes are here from every peer, and need not be kept for any */
static size_t reducible(const struct exchange *exchange)
{
    size_t bytes = exchange->bytes;
    for (int i = 0; i < exchange->lane_count; i++) {
        const struct lane *lane = &exchange->lanes[i];
        if (lane->in.first.done < bytes)
            bytes = lane->in.first.done;
        if (exchange->output_is_sent && lane->out.first.done < bytes)
            bytes = lane->out.first.done;
    }
    return bytes;
}

static void step_reduction(struct exchange *exchange)
{
    const size_t total = exchange->bytes, limit = reducible(exchange);
    const size_t before = exchange->done;
    while (exchange->done < total) {
        size_t left = total - exchange->done, piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        if (exchange->done + piece > limit)
            break;
        reduce_piece(exchange, piece);
        exchange->done += piece;
    }
    for (int i = 0; i < exchange->lane_count && exchange->done > before; i++) {
        struct lane *lane = &exchange->lanes[i];
        size_t open = exchange->done + lane->in.first.ring;
        lane->in.first.open = open < total ? open : total;
        if (lane->out.second.bytes > 0)
            lane->out.second.open = exchange->done;
    }
}

static int scratch_reserve(struct group *group, size_t bytes)
{
    struct mesh *mesh = group->mesh;
    if (bytes <= mesh->scratch_bytes)
        return 0;
    free(mesh->scratch);
    mesh->scratch_bytes = 0;
    mesh->scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!mesh->scratch)
        return mesh_fail(group, &MemoryError, "rank %d has no memory for %zu bytes of a collective",
                         group->rank, bytes);
    mesh->scratch_bytes = bytes;
    return 0;
}

/* reduction_begin - reduce `bytes` of everybody's values with `own` ones into `output` */
static int reduction_begin(struct exchange *exchange, const struct call *call, const char *own,
                           char *output, size_t bytes)
{
    size_t pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    size_t ring = (pieces < RING_PIECES ? pieces : RING_PIECES) * PIECE_BYTES;
    if (scratch_reserve(exchange->group, ring * (size_t)exchange->lane_count) < 0)
        return -1;
    exchange->step = step_reduction;
    exchange->own = own;
    exchange->output = output;
    exchange->bytes = bytes;
    exchange->done = 0;
    exchange->output_is_sent = false;
    exchange->dtype = call->dtype;
    exchange->op = call->op;
    for (int i = 0; i < exchange->lane_count; i++)
        exchange->lanes[i].in.first = (struct part){exchange->mesh->scratch + ring * (size_t)i,
                                                    bytes, ring < bytes ? ring : bytes, 0, ring};
    return 0;
}

/* ---- the calls ---- */

static int all_reduce_in_one_hop(struct exchange *exchange, const struct call *call)
{
    size_t bytes = call_bytes(call);
    if (reduction_begin(exchange, call, call->input, call->output, bytes) < 0)
        return -1;
    exchange->output_is_sent = true;
    for (int i = 0; i < exchange->lane_count; i++)
        exchange->lanes[i].out.first = part_of(call->input, 0, bytes, true);
    return exchange_run(exchange);
}

static int all_reduce_in_two_hops(struct exchange *exchange, const struct call *call)
{
    const int rank = exchange->group->rank, size = exchange->group->world_size;
    const struct chunk mine = chunk_of(call, rank, size);
    if (reduction_begin(exchange, call, (const char *)call->input + mine.begin,
                        (char *)call->output + mine.begin, mine.bytes) < 0)
        return -1;
    for (int i = 0; i < exchange->lane_count; i++) {
        struct lane *lane = &exchange->lanes[i];
        const struct chunk theirs = chunk_of(call, lane->peer, size);
        lane->out.first = part_of(call->input, theirs.begin, theirs.bytes, true);
        lane->out.second = part_of(call->output, mine.begin, mine.bytes, false);
        lane->in.second = part_of(call->output, theirs.begin, theirs.bytes, true);
    }
    return exchange_run(exchange);
}

static int run_all_reduce(struct exchange *exchange, const struct call *call)
{
    return call_bytes(call) <= ONE_HOP_BYTES ? all_reduce_in_one_hop(exchange, call)
                                             : all_reduce_in_two_hops(exchange, call);
}

static int run_reduce_scatter(struct exchange *exchange, const struct call *call)
{
    const size_t bytes = call_bytes(call);
    const char *input = call->input;
    if (reduction_begin(exchange, call, input + bytes * (size_t)exchange->group->rank, call->output,
                        bytes) < 0)
        return -1;
    for (int i = 0; i < exchange->lane_count; i++) {
        struct lane *lane = &exchange->lanes[i];
        lane->out.first = part_of(input, bytes * (size_t)lane->peer, bytes, true);
    }
    return exchange_run(exchange);
}

static int run_all_gather(struct exchange *exchange, const struct call *call)
{
    const size_t bytes = call_bytes(call);
    for (int i = 0; i < exchange->lane_count; i++) {
        struct lane *lane = &exchange->lanes[i];
        lane->out.second = part_of(call->input, 0, bytes, true);
        lane->in.second = part_of(call->output, bytes * (size_t)lane->peer, bytes, true);
    }
    if (bytes > 0) /* the input may be its own place in the output */
        memmove((char *)call->output + bytes * (size_t)exchange->group->rank, call->input, bytes);
    return exchange_run(exchange);
}

/* step_broadcast - what has come from the root can be passed on */
static void step_broadcast(struct exchange *exchange)
{
    size_t here = 0;
    for (int i = 0; i < exchange->lane_count; i++)
        here += exchange->lanes[i].in.first.done; /* only the root's lane has any */
    for (int i = 0; i < exchange->lane_count; i++)
        if (exchange->lanes[i].out.second.bytes > 0)
            exchange->lanes[i].out.second.open = here;
}

/* broadcast_chunk - the chunk that a rank hands on: all, for the root, if the values are few */
static struct chunk broadcast_chunk(const struct exchange *exchange, const struct call *call,
                                    int rank)
{
    size_t bytes = call_bytes(call);
    if (bytes <= WHOLE_BYTES)
        return (struct chunk){0, rank == call->peer ? bytes : 0};
    return chunk_of(call, rank, exchange->group->world_size);
}

static void broadcast_from_here(struct exchange *exchange, const struct call *call)
{
    const struct chunk mine = broadcast_chunk(exchange, call, exchange->group->rank);
    for (int i = 0; i < exchange->lane_count; i++) {
        struct lane *lane = &exchange->lanes[i];
        const struct chunk theirs = broadcast_chunk(exchange, call, lane->peer);
        lane->out.first = part_of(call->input, theirs.begin, theirs.bytes, true);
        lane->out.second = part_of(call->input, mine.begin, mine.bytes, true);
    }
}

static void broadcast_to_here(struct exchange *exchange, const struct call *call)
{
    const struct chunk mine = broadcast_chunk(exchange, call, exchange->group->rank);
    exchange->step = step_broadcast;
    for (int i = 0; i < exchange->lane_count; i++) {
        struct lane *lane = &exchange->lanes[i];
        const struct chunk theirs = broadcast_chunk(exchange, call, lane->peer);
        lane->in.second = part_of(call->output, theirs.begin, theirs.bytes, true);
        if (lane->peer == call->peer)
            lane->in.first = part_of(call->output, mine.begin, mine.bytes, true);
        else
            lane->out.second = part_of(call->output, mine.begin, mine.bytes, false);
    }
}

static int run_broadcast(struct exchange *exchange, const struct call *call)
{
    if (exchange->group->rank == call->peer)
        broadcast_from_here(exchange, call);
    else
        broadcast_to_here(exchange, call);
    return exchange_run(exchange);
}

static int run_barrier(struct exchange *exchange, const struct call *call)
{
    (void)call;
    return exchange_run(exchange);
}

/* A send ends when the receiver's header has come: a mismatch is an error on both sides. */
static int run_send(struct exchange *exchange, const struct call *call)
{
    exchange->lanes[0].out.first = part_of(call->input, 0, call_bytes(call), true);
    return exchange_run(exchange);
}

static int run_recv(struct exchange *exchange, const struct call *call)
{
    exchange->lanes[0].in.first = part_of(call->output, 0, call_bytes(call), true);
    return exchange_run(exchange);
}

int tcp_agree(struct group *group, const struct call *call)
{
    struct exchange exchange;
    if (mesh_hear_all(group) < 0)
        return -1;
    exchange_begin(&exchange, group, call);
    return exchange_run(&exchange);
}

int tcp_run(struct group *group, const struct call *call)
{
    static int (*const run[CALL_KINDS])(struct exchange * exchange, const struct call *call) = {
        [CALL_ALL_REDUCE] = run_all_reduce,
        [CALL_BROADCAST] = run_broadcast,
        [CALL_ALL_GATHER] = run_all_gather,
        [CALL_BARRIER] = run_barrier,
        [CALL_REDUCE_SCATTER] = run_reduce_scatter,
        [CALL_SEND] = run_send,
        [CALL_RECV] = run_recv,
    };
    struct exchange exchange;
    if (mesh_hear_all(group) < 0)
        return -1;
    exchange_begin(&exchange, group, call);
    int result = run[call->kind](&exchange, call);
    if (result == 0 && !is_message(call->kind))
        exchange.mesh->completed++;
    return result;
}

/* dist_wire.c - one call's traffic with all peers at once, over non-blocking sockets.
 *
 * Every lane sends and receives whatever it can. A thread that can do neither gives its core away
 * and asks again, for a moment, and then sleeps in poll: the other rank may be on the same core,
 * and to be woken takes longer than most messages.
 *
 * The first thing on every lane is the header: nothing that follows is received before both sides
 * are known to have called the same. A call ends only after the headers of all peers have come and
 * agreed, so no rank gets past a collective that another one called differently. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/activity.h"
#include "runtime/clock.h"
#include "runtime/dist_tcp.h"

enum {
    GATHER = 16,       /* runs of bytes that go into one system call */
    AHEAD = 2,         /* pieces by which the first part of a flow is ahead of the second */
    SHORT_WAIT_MS = 5, /* a wait that lasts longer is made visible as activity */
};

static const double AWAKE_S = 50e-6; /* how long to ask again before going to sleep */

/* ---- the order of bytes in a flow ---- */

static bool header_is_through(const struct flow *flow)
{
    return flow->header_done == sizeof *flow->header;
}

static bool flow_is_through(const struct flow *flow)
{
    return header_is_through(flow) && flow->first.done == flow->first.bytes &&
           flow->second.done == flow->second.bytes;
}

static struct part *flow_part(struct flow *flow)
{
    struct part *first = &flow->first, *second = &flow->second;
    if (first->done == first->bytes)
        return second;
    if (second->done == second->bytes || first->done % PIECE_BYTES)
        return first;
    if (second->done % PIECE_BYTES)
        return second;
    return first->done <= second->done + AHEAD * PIECE_BYTES ? first : second;
}

/* flow_next - the next run of bytes that may move; of length 0 if there is none */
static struct iovec flow_next(struct flow *flow)
{
    if (!header_is_through(flow))
        return (struct iovec){(char *)flow->header + flow->header_done,
                              sizeof *flow->header - flow->header_done};
    struct part *part = flow_part(flow);
    size_t place = part->ring ? part->done % part->ring : part->done;
    size_t open = part->open - part->done, piece = PIECE_BYTES - part->done % PIECE_BYTES;
    char *next = place > 0 ? part->data + place : part->data; /* where there is none, NULL stays */
    return (struct iovec){next, open < piece ? open : piece};
}

static void flow_skip(struct flow *flow, size_t bytes)
{
    if (header_is_through(flow))
        flow_part(flow)->done += bytes;
    else
        flow->header_done += bytes;
}

static void flow_advance(struct flow *flow, size_t bytes)
{
    while (bytes > 0) {
        size_t run = flow_next(flow).iov_len;
        run = run < bytes ? run : bytes;
        flow_skip(flow, run);
        bytes -= run;
    }
}

/* flow_gather - the next runs of bytes, at most `limit`, for one system call */
static size_t flow_gather(const struct flow *flow, struct iovec *runs, size_t limit)
{
    struct flow ahead = *flow;
    size_t n = 0;
    while (n < limit && (runs[n] = flow_next(&ahead)).iov_len > 0)
        flow_skip(&ahead, runs[n++].iov_len);
    return n;
}

/* ---- movement ---- */

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK;
}

static int data_socket(const struct exchange *exchange, const struct lane *lane)
{
    return exchange->mesh->peers[lane->peer].fd[CHANNEL_DATA];
}

/* lane_stopped - after a system call that moved nothing. returns: 0 to go on, -1 if it is over */
static int lane_stopped(struct exchange *exchange, struct lane *lane, struct flow *flow, int error)
{
    if (error == EINTR)
        return 0;
    flow->blocked = would_block(error);
    return flow->blocked ? 0
                         : mesh_fail_left(exchange->group, &exchange->header, lane->peer, error);
}

/* lane_send, lane_receive - returns: 1 if something moved, 0 if not, -1 if the group is broken */
static int lane_send(struct exchange *exchange, struct lane *lane)
{
    struct iovec runs[GATHER];
    size_t n = lane->out.blocked ? 0 : flow_gather(&lane->out, runs, GATHER);
    if (n == 0)
        return 0;
    struct msghdr message = {.msg_iov = runs, .msg_iovlen = n};
    ssize_t sent = sendmsg(data_socket(exchange, lane), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return lane_stopped(exchange, lane, &lane->out, errno);
    flow_advance(&lane->out, (size_t)sent);
    return 1;
}

static int lane_receive(struct exchange *exchange, struct lane *lane)
{
    struct iovec runs[GATHER];
    bool greeted = header_is_through(&lane->in);
    size_t n = lane->in.blocked ? 0 : flow_gather(&lane->in, runs, greeted ? GATHER : 1);
    if (n == 0)
        return 0;
    struct msghdr message = {.msg_iov = runs, .msg_iovlen = n};
    ssize_t got = recvmsg(data_socket(exchange, lane), &message, MSG_DONTWAIT);
    if (got <= 0)
        return lane_stopped(exchange, lane, &lane->in, got < 0 ? errno : 0);
    flow_advance(&lane->in, (size_t)got);
    if (!greeted && header_is_through(&lane->in) &&
        !header_agrees(&exchange->header, exchange->group->rank, &lane->theirs, lane->peer))
        return mesh_fail_mismatch(exchange->group, &exchange->header, lane->peer, &lane->theirs);
    return 1;
}

/* exchange_move - every lane once. returns: as lane_send */
static int exchange_move(struct exchange *exchange)
{
    int moved = 0;
    for (int i = 0; i < 2 * exchange->lane_count; i++) {
        struct lane *lane = &exchange->lanes[i / 2];
        int result = i % 2 ? lane_receive(exchange, lane) : lane_send(exchange, lane);
        if (result < 0)
            return -1;
        if (result > 0 && exchange->step)
            exchange->step(exchange);
        moved |= result;
    }
    return moved;
}

static bool exchange_is_through(const struct exchange *exchange)
{
    for (int i = 0; i < exchange->lane_count; i++)
        if (!flow_is_through(&exchange->lanes[i].in) || !flow_is_through(&exchange->lanes[i].out))
            return false;
    return true;
}

/* ---- waiting ---- */

struct waiting {
    int n;
    struct pollfd at[2 * GROUP_MAX_RANKS];
    struct lane *lanes[2 * GROUP_MAX_RANKS]; /* NULL: the control connection of peer */
    int peers[2 * GROUP_MAX_RANKS];
};

static void waiting_add(struct waiting *waiting, int fd, int events, int peer, struct lane *lane)
{
    waiting->at[waiting->n] = (struct pollfd){.fd = fd, .events = (short)events};
    waiting->peers[waiting->n] = peer;
    waiting->lanes[waiting->n++] = lane;
}

static void waiting_collect(struct waiting *waiting, struct exchange *exchange)
{
    const struct group *group = exchange->group;
    waiting->n = 0;
    for (int i = 0; i < exchange->lane_count; i++) {
        struct lane *lane = &exchange->lanes[i];
        int events = (flow_next(&lane->in).iov_len > 0 ? POLLIN : 0) |
                     (flow_next(&lane->out).iov_len > 0 ? POLLOUT : 0);
        if (events)
            waiting_add(waiting, data_socket(exchange, lane), events, lane->peer, lane);
    }
    for (int p = 0; p < group->world_size; p++) {
        const struct peer *peer = &exchange->mesh->peers[p];
        if (p != group->rank && !peer->silent)
            waiting_add(waiting, peer->fd[CHANNEL_CONTROL], POLLIN, p, NULL);
    }
}

/* waiting_names - "rank 1", "ranks 1, 2 and 5": those whose bytes are missing */
static const char *waiting_names(const struct waiting *waiting, char *text, size_t bytes)
{
    int awaited[GROUP_MAX_RANKS], n = 0;
    for (int i = 0; i < waiting->n; i++)
        if (waiting->lanes[i])
            awaited[n++] = waiting->peers[i];
    size_t length = (size_t)snprintf(text, bytes, n > 1 ? "ranks " : "rank ");
    for (int i = 0; i < n && length < bytes; i++)
        length += (size_t)snprintf(text + length, bytes - length, "%s%d",
                                   i == 0       ? ""
                                   : i == n - 1 ? " and "
                                                : ", ",
                                   awaited[i]);
    return text;
}

/* poll_until - poll that goes on after signals. returns: how many are ready, 0 at the deadline */
static int poll_until(struct waiting *waiting, double deadline)
{
    for (;;) {
        double left = deadline - seconds_now();
        int ready = poll(waiting->at, (nfds_t)waiting->n, left > 0 ? 1 + (int)(1e3 * left) : 0);
        if (ready > 0 || (ready == 0 && left <= 0))
            return ready;
    }
}

/* wait_visibly - the rest of a wait that turned out long. returns: as poll_until, -1 at the end */
static int wait_visibly(struct exchange *exchange, struct waiting *waiting)
{
    char what[DESCRIPTION_BYTES], names[DESCRIPTION_BYTES];
    const double timeout = exchange->group->timeout_s;
    header_describe(&exchange->header, what);
    waiting_names(waiting, names, sizeof names);
    activity_begin("%s, waiting for %s", what, names);
    int ready = poll_until(waiting, seconds_now() + timeout);
    activity_end();
    if (ready > 0)
        return ready;
    return mesh_fail(exchange->group, &TimeoutError, "rank %d waited %g s for %s in %s",
                     exchange->group->rank, timeout, names, what);
}

/* exchange_wait - sleep until something can move. errors: -1, the group is broken */
static int exchange_wait(struct exchange *exchange)
{
    struct waiting waiting;
    waiting_collect(&waiting, exchange);
    if (poll(waiting.at, (nfds_t)waiting.n, SHORT_WAIT_MS) <= 0 &&
        wait_visibly(exchange, &waiting) < 0)
        return -1;
    for (int i = waiting.n - 1; i >= 0; i--) { /* the control connections come first */
        short events = waiting.at[i].revents;
        struct lane *lane = waiting.lanes[i];
        if (!lane && events && mesh_hear(exchange->group, waiting.peers[i]) < 0)
            return -1;
        if (lane && events & ~POLLOUT)
            lane->in.blocked = false;
        if (lane && events & ~POLLIN)
            lane->out.blocked = false;
    }
    return 0;
}

/* exchange_yield - let others run, then ask every socket again */
static void exchange_yield(struct exchange *exchange)
{
    sched_yield();
    for (int i = 0; i < exchange->lane_count; i++)
        exchange->lanes[i].in.blocked = exchange->lanes[i].out.blocked = false;
}

/* The ranks have met, and cannot go on before the last of them came. */
static void meet(const struct exchange *exchange)
{
    double latest = exchange->header.clock, bytes = 0;
    for (int i = 0; i < exchange->lane_count; i++) {
        const struct lane *lane = &exchange->lanes[i];
        latest = lane->theirs.clock > latest ? lane->theirs.clock : latest;
        bytes += (double)(lane->out.first.bytes + lane->out.second.bytes);
    }
    clock_exchange(latest, bytes);
}

int exchange_run(struct exchange *exchange)
{
    double idle_since = 0; /* 0: something has just moved */
    if (exchange->step)
        exchange->step(exchange);
    while (!exchange_is_through(exchange)) {
        int moved = exchange_move(exchange);
        if (moved < 0)
            return -1;
        if (moved > 0) {
            idle_since = 0;
            continue;
        }
        double now = seconds_now();
        idle_since = idle_since > 0 ? idle_since : now;
        if (now - idle_since < AWAKE_S)
            exchange_yield(exchange);
        else if (exchange_wait(exchange) < 0)
            return -1;
        else
            idle_since = 0;
    }
    meet(exchange);
    return 0;
}

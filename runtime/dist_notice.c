/* dist_notice.c - what goes wrong between ranks, in words, and how every rank hears of it. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/clock.h"
#include "runtime/dist_tcp.h"

/* How long to wait for the reason after a connection has ended: both ends of a rank's connections
 * close at about the same time, in either order. */
enum { LAST_WORDS_MS = 300 };

static const char *op_name(int op)
{
    static const char *const names[] = {"sum", "min", "max", "avg"};
    return op < 4 ? names[op] : "unknown";
}

/* values_name - "float32", "float32 on cuda" */
static const char *values_name(const struct header *header, char text[32])
{
    snprintf(text, 32, "%s%s",
             header->dtype <= FLOAT16 ? dtype_name((enum dtype)header->dtype) : "unknown dtype",
             header->device == DEVICE_CPU ? "" : " on cuda");
    return text;
}

void header_describe(const struct header *header, char text[DESCRIPTION_BYTES])
{
    char name[32];
    const char *dtype = values_name(header, name), *op = op_name(header->op);
    unsigned number = header->number;
    long long count = header->count;
    const char *unit = count == 1 ? "element" : "elements";
    switch (header->kind) {
    case CALL_ALL_REDUCE:
        snprintf(text, DESCRIPTION_BYTES, "all_reduce #%u (%s, %s, %lld %s)", number, op, dtype,
                 count, unit);
        break;
    case CALL_REDUCE_SCATTER:
        snprintf(text, DESCRIPTION_BYTES, "reduce_scatter #%u (%s, %s, %lld %s per rank)", number,
                 op, dtype, count, unit);
        break;
    case CALL_ALL_GATHER:
        snprintf(text, DESCRIPTION_BYTES, "all_gather #%u (%s, %lld %s per rank)", number, dtype,
                 count, unit);
        break;
    case CALL_BROADCAST:
        snprintf(text, DESCRIPTION_BYTES, "broadcast #%u (root %d, %s, %lld %s)", number,
                 header->peer, dtype, count, unit);
        break;
    case CALL_BARRIER:
        snprintf(text, DESCRIPTION_BYTES, "barrier #%u", number);
        break;
    case CALL_SEND:
    case CALL_RECV:
        snprintf(text, DESCRIPTION_BYTES, "%s rank %d #%u (%s, %lld %s)",
                 header->kind == CALL_SEND ? "send to" : "recv from", header->peer, number, dtype,
                 count, unit);
        break;
    default:
        snprintf(text, DESCRIPTION_BYTES, "something unknown");
    }
}

bool header_agrees(const struct header *mine, int rank, const struct header *theirs, int peer)
{
    if (!is_message(mine->kind))
        return memcmp(mine, theirs, offsetof(struct header, clock)) == 0;
    return is_message(theirs->kind) && mine->kind != theirs->kind && mine->peer == peer &&
           theirs->peer == rank && mine->number == theirs->number && mine->dtype == theirs->dtype &&
           mine->device == theirs->device && mine->count == theirs->count;
}

/* tell_everybody - a control connection without earlier traffic takes a notice whole, at once */
static void tell_everybody(struct group *group, const struct notice *notice)
{
    struct mesh *mesh = group->mesh;
    for (int p = 0; p < group->world_size; p++)
        if (mesh->peers[p].fd[CHANNEL_CONTROL] >= 0)
            send(mesh->peers[p].fd[CHANNEL_CONTROL], notice, sizeof *notice,
                 MSG_NOSIGNAL | MSG_DONTWAIT);
}

int mesh_fail(struct group *group, const struct error_type *type, const char *format, ...)
{
    if (group->failure)
        return -1;
    struct notice notice = {
        .completed = group->mesh->completed,
        .is_timeout = type == &TimeoutError,
    };
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notice.text, sizeof notice.text, format, arguments);
    va_end(arguments);
    tell_everybody(group, &notice);
    return group_fail(group, type, "%s", notice.text);
}

int mesh_fail_mismatch(struct group *group, const struct header *mine, int peer,
                       const struct header *theirs)
{
    char words[2][DESCRIPTION_BYTES];
    bool first = group->rank < peer; /* the lower rank is named first, whoever notices */
    header_describe(first ? mine : theirs, words[0]);
    header_describe(first ? theirs : mine, words[1]);
    return mesh_fail(group, &DistError, "rank %d called %s while rank %d called %s",
                     first ? group->rank : peer, words[0], first ? peer : group->rank, words[1]);
}

/* last_words - whether the peer, or another one, has said why, before its connection ended */
static bool last_words(struct group *group, int peer)
{
    struct peer *gone = &group->mesh->peers[peer];
    double deadline = seconds_now() + 1e-3 * LAST_WORDS_MS;
    while (!gone->silent && seconds_now() < deadline) {
        struct pollfd control = {.fd = gone->fd[CHANNEL_CONTROL], .events = POLLIN};
        if (poll(&control, 1, LAST_WORDS_MS) > 0 && mesh_hear(group, peer) < 0)
            return true;
    }
    return false;
}

int mesh_fail_left(struct group *group, const struct header *mine, int peer, int error)
{
    if (last_words(group, peer))
        return -1;
    char what[DESCRIPTION_BYTES];
    header_describe(mine, what);
    bool closed = !error || error == ECONNRESET || error == EPIPE;
    return mesh_fail(group, &DistError,
                     "rank %d left the group (its connection %s) while rank %d was in %s", peer,
                     closed ? "closed" : strerror(error), group->rank, what);
}

/* heed - break the group as the warning says, if this rank has come as far. A rank that closes
 * after that must have told everybody why, or it would itself be taken for the one that left. */
static int heed(struct group *group)
{
    struct mesh *mesh = group->mesh;
    const struct notice *warning = &mesh->warning;
    if (!mesh->is_warned || mesh->completed < warning->completed)
        return 0;
    if (!group->failure)
        tell_everybody(group, warning);
    return group_fail(group, warning->is_timeout ? &TimeoutError : &DistError, "%s", warning->text);
}

int mesh_hear(struct group *group, int peer)
{
    struct mesh *mesh = group->mesh;
    struct peer *p = &mesh->peers[peer];
    ssize_t got = recv(p->fd[CHANNEL_CONTROL], (char *)&p->notice + p->notice_bytes,
                       sizeof p->notice - p->notice_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (got <= 0) {
        p->silent = true;
        return 0;
    }
    p->notice_bytes += (size_t)got;
    if (p->notice_bytes < sizeof p->notice)
        return 0;
    p->silent = true; /* it has nothing more to say */
    p->notice.text[FAILURE_BYTES - 1] = '\0';
    if (!mesh->is_warned)
        mesh->warning = p->notice;
    mesh->is_warned = true;
    return heed(group);
}

int mesh_hear_all(struct group *group)
{
    struct mesh *mesh = group->mesh;
    struct pollfd controls[GROUP_MAX_RANKS];
    if (heed(group) < 0)
        return -1;
    for (int p = 0; p < group->world_size; p++)
        controls[p] = (struct pollfd){
            .fd = mesh->peers[p].silent ? -1 : mesh->peers[p].fd[CHANNEL_CONTROL],
            .events = POLLIN,
        };
    int ready = poll(controls, (nfds_t)group->world_size, 0);
    for (int p = 0; p < group->world_size && ready > 0; p++)
        if (controls[p].revents && mesh_hear(group, p) < 0)
            return -1;
    return 0;
}

int mesh_absent(const struct group *group)
{
    const struct mesh *mesh = group->mesh;
    for (int p = 0; p < group->world_size; p++)
        if (p != group->rank && mesh->peers[p].silent)
            return p;
    return NO_PEER;
}

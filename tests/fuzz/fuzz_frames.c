/* fuzz_frames.c - what a peer sends in a call of a TCP group.
 *
 * The first byte chooses the call and our rank, the second how many bytes come by the control
 * connection; those follow, and then the bytes of the data connection. The peer then ends both. */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "runtime/dist_tcp.h"
#include "runtime/error.h"
#include "runtime/scope.h"
#include "tests/fuzz/fuzz.h"

enum { ELEMENTS = 6 };

/* A peer that has sent these bytes, and will send no more, though it still listens.
 * returns: our end of the connection; *theirs is the other one */
static int peer_with(const uint8_t *bytes, size_t n, int *theirs)
{
    int ends[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    ssize_t sent = send(ends[1], bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    expect(sent >= 0 || n == 0);
    expect(shutdown(ends[1], SHUT_WR) == 0);
    *theirs = ends[1];
    return socket_prepare(ends[0]);
}

static struct group *group_between(int rank, const int fd[CHANNELS])
{
    struct group *group = group_new(rank, 2, 0.2);
    struct mesh *mesh = calloc(1, sizeof *mesh);
    expect(group && mesh);
    for (int p = 0; p < GROUP_MAX_RANKS; p++)
        mesh->peers[p].fd[CHANNEL_DATA] = mesh->peers[p].fd[CHANNEL_CONTROL] = -1;
    memcpy(mesh->peers[!rank].fd, fd, sizeof mesh->peers[!rank].fd);
    group->mesh = mesh;
    return group;
}

static int call_something(struct group *group, int kind)
{
    const int64_t shape[] = {ELEMENTS}, whole_shape[] = {2 * ELEMENTS};
    struct tensor *share = tensor_zeros(1, shape, FLOAT32, CPU);
    struct tensor *whole = tensor_zeros(1, whole_shape, FLOAT32, CPU);
    int peer = !group_rank(group);
    switch (kind % CALL_KINDS) {
    case CALL_ALL_REDUCE:
        return group_all_reduce(group, share, DIST_SUM);
    case CALL_BROADCAST:
        return group_broadcast(group, share, peer);
    case CALL_ALL_GATHER:
        return group_all_gather(group, whole, share);
    case CALL_REDUCE_SCATTER:
        return group_reduce_scatter(group, share, whole, DIST_MAX);
    case CALL_SEND:
        return group_send(group, share, peer);
    case CALL_RECV:
        return group_recv(group, share, peer);
    default:
        return group_barrier(group);
    }
}

FUZZ_TARGET(frames)
{
    SCOPE;
    if (n < 2)
        return 0;
    size_t rest = n - 2, control = bytes[1] == 255 ? rest : bytes[1];
    control = control < rest ? control : rest;
    int theirs[CHANNELS], ours[CHANNELS];
    ours[CHANNEL_CONTROL] = peer_with(bytes + 2, control, &theirs[CHANNEL_CONTROL]);
    ours[CHANNEL_DATA] = peer_with(bytes + 2 + control, rest - control, &theirs[CHANNEL_DATA]);
    struct group *group = group_between(bytes[0] >> 7, ours);
    if (call_something(group, bytes[0] & 0x7F) < 0)
        expect(error_is(&DistError) || error_is(&TimeoutError));
    error_clear();
    group_close(group);
    close(theirs[CHANNEL_CONTROL]);
    close(theirs[CHANNEL_DATA]);
    return 0;
}

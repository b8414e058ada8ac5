#ifndef RUNTIME_DIST_TCP_H
#define RUNTIME_DIST_TCP_H
/* dist_tcp.h - calls carried out over TCP.
 *
 *     dist_connect.c     from options to a full mesh of connections
 *     dist_socket.c      sockets, addresses
 *     dist_notice.c      what goes wrong: notices to the other ranks, and the words for it
 *     dist_wire.c        one call's traffic with all peers at once
 *     dist_algorithms.c  what each kind of call sends and receives
 *
 * Every two ranks share two connections. The data connection carries nothing but the calls' own
 * bytes: a header that says what was called, then values. The control connection is silent until a
 * rank gives up; then it carries the reason. */
#include <sys/socket.h>

#include "runtime/dist_internal.h"

enum channel { CHANNEL_DATA, CHANNEL_CONTROL, CHANNELS };

/* What a rank tells the others when it gives up, and they pass on; sent as it is. completed: the
 * collectives that the first to give up had completed; so will the others. */
struct notice {
    uint32_t completed;
    int32_t is_timeout;
    char text[FAILURE_BYTES];
};

/* What a rank is calling, in front of the values; sent as it is. */
struct header {
    int64_t count;
    uint32_t number; /* counts the collectives of the group, or the messages between two ranks */
    uint8_t kind, dtype, op, peer, device;
    uint8_t zero[7]; /* no padding: a copy need not keep it, and headers are compared as bytes */
    double clock;    /* clock_now, when it was called; the rest is compared */
};

struct peer {
    int fd[CHANNELS]; /* -1: none */
    bool silent;      /* its control connection has ended */
    struct notice notice;
    size_t notice_bytes; /* received of it so far */
    uint32_t messages;   /* exchanged with send and recv */
};

struct mesh {
    struct peer peers[GROUP_MAX_RANKS];
    uint32_t completed; /* collectives so far */
    bool is_warned;     /* the group has failed, in a call that this rank has not come to yet */
    struct notice warning;
    char *scratch;
    size_t scratch_bytes;
};

/* tcp_connect - give the group its mesh. errors: -1, as group_connect */
int tcp_connect(struct group *group, const struct group_options *options);

/* mesh_close - close every connection and free the mesh; after the last call. NULL is allowed. */
void mesh_close(struct mesh *mesh);

/* ---- dist_notice.c ---- */

enum { DESCRIPTION_BYTES = 160 };

/* header_describe - "all_reduce #2 (sum, float32, 12 elements)" */
void header_describe(const struct header *header, char text[DESCRIPTION_BYTES]);

/* header_agrees - what rank `peer` called goes together with what this rank called */
bool header_agrees(const struct header *mine, int rank, const struct header *theirs, int peer);

/* mesh_fail - break the group and tell every peer why. returns: -1 */
int mesh_fail(struct group *group, const struct error_type *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int mesh_fail_mismatch(struct group *group, const struct header *mine, int peer,
                       const struct header *theirs);
int mesh_fail_left(struct group *group, const struct header *mine, int peer, int error);

/* mesh_hear - read what has come on a peer's control connection
 * returns: 0; -1 if it was a notice that concerns the present call and has broken the group. One
 * that concerns a later call is kept until then: what everybody has begun can still end. */
int mesh_hear(struct group *group, int peer);

/* mesh_hear_all - at the beginning of a call: what has come meanwhile. returns: as mesh_hear */
int mesh_hear_all(struct group *group);

/* mesh_absent - a peer whose connection has ended, or NO_PEER */
int mesh_absent(const struct group *group);

/* ---- dist_wire.c ---- */

enum { PIECE_BYTES = 32 * 1024 };

/* A run of bytes to send or receive. At most `open` of them may move yet. */
struct part {
    char *data;
    size_t bytes, open, done;
    size_t ring; /* bytes that `data` holds at a time, a multiple of a piece; 0: all of them */
};

/* One direction of the traffic with a peer: the header, then pieces of both parts in turn, the
 * first ahead of the second. The order depends on nothing but the sizes, so both sides know it. */
struct flow {
    struct header *header;
    size_t header_done;
    struct part first, second;
    bool blocked; /* the socket had no more room, or bytes, when last asked */
};

struct lane {
    int peer;
    struct header theirs;
    struct flow out, in;
};

struct exchange {
    struct group *group;
    struct mesh *mesh;
    struct header header;
    int lane_count;
    struct lane lanes[GROUP_MAX_RANKS];

    /* step - look at what has moved, and open more; called at the start and after every movement */
    void (*step)(struct exchange *exchange);

    /* For those that reduce: the values of the lanes' in.first and `own`, piece by piece in rank
     * order, into `output`. */
    const char *own;
    char *output;
    size_t bytes, done;
    bool output_is_sent; /* out.first is `output`: a piece must have left before it is replaced */
    enum dtype dtype;
    enum dist_op op;
};

/* exchange_run - move everything. errors: -1, the group is broken */
int exchange_run(struct exchange *exchange);

/* ---- dist_algorithms.c ---- */

/* tcp_run - carry out a call, one at a time. errors: -1, the group is broken */
int tcp_run(struct group *group, const struct call *call);

/* tcp_agree - find out whether the peers have called the same. errors: -1, the group is broken */
int tcp_agree(struct group *group, const struct call *call);

/* ---- dist_socket.c ---- */

/* socket_prepare - non-blocking, closed on exec, no SIGPIPE. returns: fd, or -1 with errno */
int socket_prepare(int fd);

/* socket_listen - a listening socket on any free port of `interface_address`; where it listens goes
 * to `address`. errors: -1, with OSError or ValueError */
enum { ADDRESS_BYTES = 128 };
int socket_listen(const char *interface_address, char address[ADDRESS_BYTES]);

/* socket_accept - the next connection of a listening socket, prepared; -1 with errno if none */
int socket_accept(int listener);

/* socket_dial - begin to connect to "host:port"
 * returns: the socket, whose connect may be in progress; -1 with errno if that failed at once
 * errors:  -2, with ValueError if the address makes no sense */
int socket_dial(const char *address);

/* socket_tune - no delay for small messages */
void socket_tune(int fd);

/* socket_transfer - send (or receive) all of `bytes` before `deadline`. returns: 0, or -1 */
int socket_transfer(int fd, void *data, size_t bytes, bool send, double deadline);

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* where there is none, socket_prepare sets SO_NOSIGPIPE */
#endif

#endif

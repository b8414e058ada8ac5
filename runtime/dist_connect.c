/* dist_connect.c - from options to a full mesh of connections.
 *
 * Of every two ranks the higher one dials, twice: for the data and for the control connection. Both
 * sides introduce themselves with a hello that holds the group's token, so that nothing else that
 * comes by is taken for a rank, and no foreign service for one. All of it goes on at the same time
 * in one poll loop: a connection that stays silent holds up nobody.
 *
 * With a file, only rank 0's address is known at first: the others connect to it, say in their
 * hello where they listen themselves, and get everybody's addresses from it. */
#include "runtime/dist_connect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/clock.h"

enum {
    LOOK_MS = 20,  /* between looks at the file, and before dialling again */
    VISITORS = 64, /* accepted connections that have not said who they are; then the oldest goes */
};

static const uint64_t HELLO_MAGIC = 0x3174736964657267; /* tells another byte order, too */

struct hello {
    uint64_t magic;
    struct token token;
    int32_t from, to, world_size, channel;
    char address[ADDRESS_BYTES]; /* where the sender listens */
};

/* A connection on its way to being a rank's. */
struct guest {
    int fd; /* -1: none */
    bool is_connected;
    size_t done; /* bytes of the hello received */
    struct hello hello;
};

/* One rank on its way into the mesh. */
struct connector {
    struct group *group;
    struct mesh *mesh;
    const char *file; /* NULL: the addresses are known */
    bool reads_file;  /* rank 0's address is not known yet, or may change */
    double deadline;
    struct token token;
    int listener; /* -1: none */
    char listens_at[ADDRESS_BYTES];
    char addresses[GROUP_MAX_RANKS][ADDRESS_BYTES]; /* "": not known yet */
    double dial_at[GROUP_MAX_RANKS];                /* not before then */
    struct guest dialled[GROUP_MAX_RANKS][CHANNELS];
    struct guest visitors[VISITORS];
    int next_visitor;
};

/* ---- introductions ---- */

static void guest_drop(struct guest *guest)
{
    if (guest->fd >= 0)
        close(guest->fd);
    *guest = (struct guest){.fd = -1};
}

/* hello_send - it is small enough to leave at once on a new connection. returns: whether it did */
static bool hello_send(const struct connector *c, int fd, int to, int channel)
{
    struct hello hello;
    memset(&hello, 0, sizeof hello);
    hello.magic = HELLO_MAGIC;
    hello.token = c->token;
    hello.from = c->group->rank;
    hello.to = to;
    hello.world_size = c->group->world_size;
    hello.channel = channel;
    memcpy(hello.address, c->listens_at, sizeof hello.address);
    return send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof hello;
}

/* hello_receive - returns: 1 when it is complete, 0 if more is to come, -1 if there will be none */
static int hello_receive(struct guest *guest)
{
    ssize_t got = recv(guest->fd, (char *)&guest->hello + guest->done,
                       sizeof guest->hello - guest->done, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    guest->done += (size_t)got;
    return guest->done == sizeof guest->hello;
}

static bool hello_is_from_a_rank(const struct connector *c, const struct hello *hello)
{
    return hello->magic == HELLO_MAGIC && memcmp(&hello->token, &c->token, sizeof c->token) == 0 &&
           hello->to == c->group->rank && hello->from >= 0 && hello->from < hello->world_size &&
           hello->channel >= 0 && hello->channel < CHANNELS &&
           hello->address[ADDRESS_BYTES - 1] == '\0';
}

/* check_size - errors: -1, with ValueError if the ranks were started with different sizes */
static int check_size(const struct connector *c, const struct hello *hello)
{
    if (hello->world_size == c->group->world_size)
        return 0;
    return raise_error(ValueError, "rank %d was started with world_size %d, rank %d with %d",
                       c->group->rank, c->group->world_size, hello->from, hello->world_size);
}

/* guest_admit - the guest's connection becomes the rank's */
static void guest_admit(struct connector *c, struct guest *guest)
{
    const struct hello *hello = &guest->hello;
    socket_tune(guest->fd);
    c->mesh->peers[hello->from].fd[hello->channel] = guest->fd;
    if (hello->from > c->group->rank)
        memcpy(c->addresses[hello->from], hello->address, ADDRESS_BYTES);
    *guest = (struct guest){.fd = -1};
}

/* ---- dialling ---- */

static void dial_later(struct connector *c, int rank, struct guest *guest)
{
    guest_drop(guest);
    c->dial_at[rank] = seconds_now() + 1e-3 * LOOK_MS;
}

/* dial - errors: -1, with ValueError for an address that makes no sense */
static int dial(struct connector *c, int rank, struct guest *guest)
{
    int fd = socket_dial(c->addresses[rank]);
    if (fd == -2)
        return -1;
    if (fd < 0)
        dial_later(c, rank, guest);
    else
        *guest = (struct guest){.fd = fd};
    return 0;
}

/* dial_missing - those lower ranks among from..to-1 that are not connected. errors: -1, as dial */
static int dial_missing(struct connector *c, int from, int to)
{
    const double now = seconds_now();
    for (int rank = from; rank < to && rank < c->group->rank; rank++)
        for (int channel = 0; channel < CHANNELS; channel++) {
            struct guest *guest = &c->dialled[rank][channel];
            if (c->mesh->peers[rank].fd[channel] < 0 && guest->fd < 0 && c->addresses[rank][0] &&
                now >= c->dial_at[rank] && dial(c, rank, guest) < 0)
                return -1;
        }
    return 0;
}

/* dialled_is_through - connected, or refused: then the rank may not be listening yet */
static void dialled_is_through(struct connector *c, int rank, int channel)
{
    struct guest *guest = &c->dialled[rank][channel];
    int error = 0;
    getsockopt(guest->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
    if (error || !hello_send(c, guest->fd, rank, channel))
        dial_later(c, rank, guest);
    else
        guest->is_connected = true;
}

/* dialled_spoke - errors: -1, as check_size */
static int dialled_spoke(struct connector *c, int rank, int channel)
{
    struct guest *guest = &c->dialled[rank][channel];
    int complete = hello_receive(guest);
    if (complete == 0)
        return 0;
    if (complete < 0 || !hello_is_from_a_rank(c, &guest->hello) || guest->hello.from != rank ||
        guest->hello.channel != channel) {
        dial_later(c, rank, guest);
        return 0;
    }
    if (check_size(c, &guest->hello) < 0)
        return -1;
    guest_admit(c, guest);
    return 0;
}

/* ---- accepting ---- */

static void visitor_accept(struct connector *c)
{
    int fd = socket_accept(c->listener);
    if (fd < 0)
        return;
    struct guest *visitor = &c->visitors[c->next_visitor];
    c->next_visitor = (c->next_visitor + 1) % VISITORS;
    guest_drop(visitor);
    *visitor = (struct guest){.fd = fd, .is_connected = true};
}

/* visitor_spoke - errors: -1, as check_size; the visitor is answered first, so that it knows too */
static int visitor_spoke(struct connector *c, struct guest *visitor)
{
    int complete = hello_receive(visitor);
    if (complete == 0)
        return 0;
    const struct hello *hello = &visitor->hello;
    if (complete < 0 || !hello_is_from_a_rank(c, hello) ||
        !hello_send(c, visitor->fd, hello->from, hello->channel)) {
        guest_drop(visitor);
        return 0;
    }
    if (check_size(c, hello) < 0)
        return -1;
    if (hello->from > c->group->rank && c->mesh->peers[hello->from].fd[hello->channel] < 0)
        guest_admit(c, visitor);
    else
        guest_drop(visitor);
    return 0;
}

/* ---- the loop ---- */

static bool is_missing(const struct connector *c, int rank)
{
    const struct peer *peer = &c->mesh->peers[rank];
    return rank != c->group->rank && (peer->fd[CHANNEL_DATA] < 0 || peer->fd[CHANNEL_CONTROL] < 0);
}

static bool any_missing(const struct connector *c, int from, int to)
{
    for (int rank = from; rank < to; rank++)
        if (is_missing(c, rank))
            return true;
    return false;
}

/* look_at_file - where rank 0 listens. What was dialled after an older file is dialled again. */
static void look_at_file(struct connector *c)
{
    struct token token;
    char address[ADDRESS_BYTES];
    if (!rendezvous_read(c->file, address, &token) ||
        (strcmp(address, c->addresses[0]) == 0 && memcmp(&token, &c->token, sizeof token) == 0))
        return;
    memcpy(c->addresses[0], address, sizeof address);
    c->token = token;
    for (int channel = 0; channel < CHANNELS; channel++) {
        int *fd = &c->mesh->peers[0].fd[channel];
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        guest_drop(&c->dialled[0][channel]);
    }
}

enum { DIALLED = GROUP_MAX_RANKS * CHANNELS, SOCKETS = 1 + DIALLED + VISITORS };

/* watch - what to poll: the listener, those dialled, the visitors */
static void watch(const struct connector *c, struct pollfd at[SOCKETS])
{
    *at++ = (struct pollfd){.fd = c->listener, .events = POLLIN};
    for (int i = 0; i < DIALLED; i++) {
        const struct guest *guest = &c->dialled[i / CHANNELS][i % CHANNELS];
        *at++ = (struct pollfd){.fd = guest->fd, .events = guest->is_connected ? POLLIN : POLLOUT};
    }
    for (int i = 0; i < VISITORS; i++)
        *at++ = (struct pollfd){.fd = c->visitors[i].fd, .events = POLLIN};
}

/* attend - to everything that poll found. errors: -1, as check_size */
static int attend(struct connector *c, const struct pollfd at[SOCKETS])
{
    if (at[0].revents)
        visitor_accept(c);
    for (int i = 0; i < DIALLED; i++) {
        int rank = i / CHANNELS, channel = i % CHANNELS;
        if (at[1 + i].revents == 0)
            continue;
        if (!c->dialled[rank][channel].is_connected)
            dialled_is_through(c, rank, channel);
        else if (dialled_spoke(c, rank, channel) < 0)
            return -1;
    }
    for (int i = 0; i < VISITORS; i++)
        if (at[1 + DIALLED + i].revents && c->visitors[i].fd == at[1 + DIALLED + i].fd &&
            visitor_spoke(c, &c->visitors[i]) < 0)
            return -1;
    return 0;
}

static int fail_missing(const struct connector *c, int from, int to)
{
    char names[5 * GROUP_MAX_RANKS] = "";
    size_t length = 0;
    for (int rank = from; rank < to; rank++)
        if (is_missing(c, rank))
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%d",
                                       length ? ", " : "", rank);
    return raise_error(TimeoutError, "rank %d waited %g s for rank%s %s to connect", c->group->rank,
                       c->group->timeout_s, strchr(names, ',') ? "s" : "", names);
}

/* connect_ranks - until the ranks from..to-1 are connected: lower ones are dialled, higher ones
 * accepted. errors: -1, with TimeoutError naming those that did not come, ValueError */
static int connect_ranks(struct connector *c, int from, int to)
{
    struct pollfd at[SOCKETS];
    while (any_missing(c, from, to)) {
        if (seconds_now() > c->deadline)
            return fail_missing(c, from, to);
        if (c->reads_file)
            look_at_file(c);
        if (dial_missing(c, from, to) < 0)
            return -1;
        watch(c, at);
        if (poll(at, SOCKETS, LOOK_MS) > 0 && attend(c, at) < 0)
            return -1;
    }
    return 0;
}

/* ---- the two ways to find each other ---- */

static int meet_by_addresses(struct connector *c, const struct group_options *options)
{
    if (listen(c->listener, SOMAXCONN) < 0)
        return raise_error(OSError, "rank %d cannot listen on its socket: %s", options->rank,
                           strerror(errno));
    c->token = options->token ? token_of(&options->token, 1)
                              : token_of(options->addresses, options->world_size);
    for (int rank = 0; rank < options->world_size; rank++) {
        if (strlen(options->addresses[rank]) >= ADDRESS_BYTES)
            return raise_error(ValueError, "the address of rank %d is too long", rank);
        strcpy(c->addresses[rank], options->addresses[rank]);
    }
    return connect_ranks(c, 0, options->world_size);
}

/* meet_as_first - rank 0: publish, let everybody come, tell all where the others are */
static int meet_as_first(struct connector *c)
{
    if (token_random(&c->token) < 0 || rendezvous_publish(c->file, c->listens_at, &c->token) < 0)
        return -1;
    int result = connect_ranks(c, 1, c->group->world_size);
    unlink(c->file);
    for (int rank = 1; rank < c->group->world_size && result == 0; rank++)
        if (socket_transfer(c->mesh->peers[rank].fd[CHANNEL_DATA], c->addresses,
                            sizeof c->addresses, true, c->deadline) < 0)
            result = raise_error(DistError, "rank %d left while the group was connecting", rank);
    return result;
}

static int meet_as_other(struct connector *c)
{
    c->reads_file = true;
    if (connect_ranks(c, 0, 1) < 0)
        return -1;
    c->reads_file = false;
    if (socket_transfer(c->mesh->peers[0].fd[CHANNEL_DATA], c->addresses, sizeof c->addresses,
                        false, c->deadline) == 0)
        return connect_ranks(c, 1, c->group->world_size);
    if (seconds_now() < c->deadline)
        return raise_error(DistError, "rank 0 left while the group was connecting");
    return raise_error(TimeoutError, "rank %d waited %g s for rank 0 to have met all %d ranks",
                       c->group->rank, c->group->timeout_s, c->group->world_size);
}

static int meet_by_file(struct connector *c, const struct group_options *options)
{
    const char *interface = options->interface_address;
    c->listener = socket_listen(interface ? interface : "127.0.0.1", c->listens_at);
    if (c->listener < 0)
        return -1;
    return options->rank == 0 ? meet_as_first(c) : meet_as_other(c);
}

/* ---- the whole ---- */

static void connector_init(struct connector *c, struct group *group,
                           const struct group_options *options)
{
    c->group = group;
    c->mesh = group->mesh;
    c->file = options->file;
    c->deadline = seconds_now() + group->timeout_s;
    c->listener = options->addresses ? socket_prepare(options->listener) : -1;
    for (int i = 0; i < DIALLED; i++)
        c->dialled[i / CHANNELS][i % CHANNELS].fd = -1;
    for (int i = 0; i < VISITORS; i++)
        c->visitors[i].fd = -1;
}

/* connector_free - close what did not become part of the mesh */
static void connector_free(struct connector *c)
{
    if (c->listener >= 0)
        close(c->listener);
    for (int i = 0; i < DIALLED; i++)
        guest_drop(&c->dialled[i / CHANNELS][i % CHANNELS]);
    for (int i = 0; i < VISITORS; i++)
        guest_drop(&c->visitors[i]);
    free(c);
}

static struct mesh *mesh_new(void)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    for (int rank = 0; rank < GROUP_MAX_RANKS && mesh; rank++)
        mesh->peers[rank].fd[CHANNEL_DATA] = mesh->peers[rank].fd[CHANNEL_CONTROL] = -1;
    return mesh;
}

/* peer_close - unread bytes would make TCP reset the control connection, and drop our own notice */
static void peer_close(struct peer *peer)
{
    struct notice unread;
    if (peer->fd[CHANNEL_DATA] >= 0)
        close(peer->fd[CHANNEL_DATA]);
    if (peer->fd[CHANNEL_CONTROL] < 0)
        return;
    while (recv(peer->fd[CHANNEL_CONTROL], &unread, sizeof unread, MSG_DONTWAIT) > 0)
        ;
    close(peer->fd[CHANNEL_CONTROL]);
}

void mesh_close(struct mesh *mesh)
{
    if (!mesh)
        return;
    for (int rank = 0; rank < GROUP_MAX_RANKS; rank++)
        peer_close(&mesh->peers[rank]);
    free(mesh->scratch);
    free(mesh);
}

int tcp_connect(struct group *group, const struct group_options *options)
{
    struct connector *c = calloc(1, sizeof *c);
    group->mesh = mesh_new();
    if (!c || !group->mesh) {
        mesh_close(group->mesh);
        free(c);
        return raise_error(MemoryError, "out of memory for the connections of a group");
    }
    connector_init(c, group, options);
    int result = 0;
    if (options->world_size > 1)
        result = options->addresses ? meet_by_addresses(c, options) : meet_by_file(c, options);
    connector_free(c);
    if (result < 0)
        mesh_close(group->mesh);
    return result;
}

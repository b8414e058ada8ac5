#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/dist_tcp.h"

int socket_prepare(int fd)
{
    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) {
        close(fd);
        return -1;
    }
#ifdef SO_NOSIGPIPE
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    return fd;
}

static int socket_new(int family)
{
#ifdef SOCK_CLOEXEC
    return socket_prepare(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
#else
    return socket_prepare(socket(family, SOCK_STREAM, 0));
#endif
}

int socket_accept(int listener)
{
#ifdef SOCK_CLOEXEC
    return socket_prepare(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
#else
    return socket_prepare(accept(listener, NULL, NULL));
#endif
}

/* resolve - errors: NULL, with ValueError. owns: the caller, until freeaddrinfo */
static struct addrinfo *resolve(const char *host, const char *port, int flags)
{
    struct addrinfo *found = NULL;
    int error = getaddrinfo(
        host, port,
        &(struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV}, &found);
    if (error)
        return raise_null(ValueError, "no such address: %s:%s (%s)", host, port,
                          gai_strerror(error));
    return found;
}

/* split_address - "host:port" or "[host]:port". errors: -1, with ValueError */
static int split_address(const char *address, char host[ADDRESS_BYTES], const char **port)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || colon - address >= ADDRESS_BYTES)
        return raise_error(ValueError, "an address must be host:port, got \"%s\"", address);
    bool brackets = address[0] == '[' && colon[-1] == ']';
    snprintf(host, ADDRESS_BYTES, "%.*s", (int)(colon - address) - 2 * brackets,
             address + brackets);
    *port = colon + 1;
    return 0;
}

int socket_dial(const char *address)
{
    char host[ADDRESS_BYTES];
    const char *port;
    if (split_address(address, host, &port) < 0)
        return -2;
    struct addrinfo *found = resolve(host, port, 0);
    if (!found)
        return -2;
    int fd = socket_new(found->ai_family);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0 && errno != EINPROGRESS &&
        errno != EINTR) {
        int reason = errno;
        close(fd);
        errno = reason;
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* bound_address - where a socket listens, with the host as it was asked for */
static int bound_address(int fd, const char *host, char address[ADDRESS_BYTES])
{
    struct sockaddr_storage bound;
    char port[16];
    if (getsockname(fd, (struct sockaddr *)&bound, &(socklen_t){sizeof bound}) < 0 ||
        getnameinfo((struct sockaddr *)&bound, sizeof bound, NULL, 0, port, sizeof port,
                    NI_NUMERICSERV) != 0)
        return -1;
    const char *form = strchr(host, ':') ? "[%s]:%s" : "%s:%s";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int length = snprintf(address, ADDRESS_BYTES, form, host, port);
#pragma GCC diagnostic pop
    return length < ADDRESS_BYTES ? 0 : -1;
}

int socket_listen(const char *interface_address, char address[ADDRESS_BYTES])
{
    struct addrinfo *found = resolve(interface_address, "0", AI_PASSIVE);
    if (!found)
        return -1;
    int fd = socket_new(found->ai_family);
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0 ||
        bound_address(fd, interface_address, address) < 0) {
        (void)raise_error(OSError, "cannot listen on %s: %s", interface_address, strerror(errno));
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

void socket_tune(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* ready_before - wait until the socket can be used. returns: false when the time is over */
static bool ready_before(int fd, short events, double deadline)
{
    double left = deadline - seconds_now();
    struct pollfd wanted = {.fd = fd, .events = events};
    return left > 0 && poll(&wanted, 1, 1 + (int)(1e3 * left)) >= 0;
}

int socket_transfer(int fd, void *data, size_t bytes, bool sending, double deadline)
{
    for (size_t done = 0; done < bytes;) {
        char *at = (char *)data + done;
        ssize_t moved =
            sending ? send(fd, at, bytes - done, MSG_NOSIGNAL) : recv(fd, at, bytes - done, 0);
        if (moved > 0)
            done += (size_t)moved;
        else if (moved == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
            return -1;
        else if (!ready_before(fd, sending ? POLLOUT : POLLIN, deadline))
            return -1;
    }
    return 0;
}

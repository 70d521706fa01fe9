/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.c: sockets between ranks.
 */
#include "ranks/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/error.h"

_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
               "a port lies at the same place");

enum { FRAME_MAGIC = 0x6e6a4601, CONNECT_MS = 5000 };

int64_t now_ms(void)
{
    return clock_ns() / 1000000;
}

int wait_until(int64_t deadline, int most)
{
    const int64_t left = deadline - now_ms();
    return left < 0 ? 0 : left < most ? (int)left : most;
}

/* ---- messages ---- */

int wire_send(int fd, const void *data, size_t bytes, int64_t deadline)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent >= 0) {
            at += sent;
            bytes -= (size_t)sent;
            continue;
        }
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (errno != EINTR && (errno != EAGAIN || now_ms() >= deadline))
            return -1;
        poll(&p, 1, wait_until(deadline, 1000));
    }
    return 0;
}

int frame_send(int fd, uint32_t kind, int rank, const void *text, size_t bytes, int64_t deadline)
{
    struct frame f = {.magic = FRAME_MAGIC, .kind = kind, .rank = (uint32_t)rank};
    memcpy(f.text, text, bytes < sizeof f.text ? bytes : sizeof f.text);
    const int rc = wire_send(fd, &f, sizeof f, deadline);
    if (rc != 0)
        shutdown(fd, SHUT_WR); /* the last frame may be incomplete */
    return rc;
}

_Static_assert(FRAME_PART < sizeof(((struct frame *)0)->text), "a NUL ends the text");

/* Send frames several at a time: a call for each would cost more than the bytes. */
int frames_send(int fd, uint32_t kind, int rank, const void *data, size_t bytes, int64_t deadline)
{
    struct frame some[32];
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < bytes;) {
        size_t n = 0;
        for (; n < sizeof some / sizeof *some && at < bytes; n++, at += FRAME_PART) {
            const size_t left = bytes - at, each = left < FRAME_PART ? left : FRAME_PART;
            some[n] = (struct frame){.magic = FRAME_MAGIC, .kind = kind, .rank = (uint32_t)rank};
            memcpy(some[n].text, (const char *)data + at, each);
        }
        rc = wire_send(fd, some, n * sizeof *some, deadline);
    }
    if (rc != 0)
        shutdown(fd, SHUT_WR);
    return rc;
}

int frame_receive(struct peer *p)
{
    while (p->have < sizeof p->in) {
        const ssize_t got =
            recv(p->fd, (char *)&p->in + p->have, sizeof p->in - p->have, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = ECONNRESET;
        if (got <= 0)
            return errno == EAGAIN ? 0 : -1;
        p->have += (size_t)got;
        if (p->have >= sizeof p->in.magic && p->in.magic != FRAME_MAGIC) {
            errno = EPROTO; /* no more bytes may ever come */
            return -1;
        }
    }
    p->have = 0;
    p->in.text[sizeof p->in.text - 1] = 0;
    return 1;
}

void peer_close(struct peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* ---- sockets ---- */

static void set(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof value);
}

void wire_prepare(int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
}

/* Return the socket, or -1 with errno. */
static int listen_at(const struct sockaddr *address, socklen_t bytes)
{
    const int fd = socket(address->sa_family, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    if (address->sa_family == AF_INET6)
        set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd, address, bytes) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int refuse_port(int port, int error)
{
    if (error == EMFILE || error == ENFILE)
        return fail(NJ_E_IO, "no socket for the other ranks: %s; raise ulimit -n", strerror(error));
    if (port == 0)
        return fail(NJ_E_IO, "cannot listen on any port: %s", strerror(error));
    return fail(NJ_E_IO, "cannot listen on port %d: %s; set MASTER_PORT to a free one", port,
                strerror(error));
}

int wire_listen(int *port, const char *host)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t bytes = sizeof six;
    int fd = -1;
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    const bool local_six =
        inet_pton(AF_INET6, number, &six.sin6_addr) == 1 && IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
    const bool local_four = inet_pton(AF_INET, number, &four.sin_addr) == 1 &&
                            ntohl(four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (!local_six)
        six.sin6_addr = in6addr_any;
    if (!local_four)
        four.sin_addr.s_addr = htonl(INADDR_ANY);
    errno = EAFNOSUPPORT;
    if (!local_four)
        fd = listen_at((const struct sockaddr *)&six, sizeof six);
    if (fd < 0 && !local_six && errno == EAFNOSUPPORT)
        fd = listen_at((const struct sockaddr *)&four, sizeof four);
    if (fd < 0)
        return refuse_port(*port, errno);
    wire_prepare(fd);
    getsockname(fd, (struct sockaddr *)&six, &bytes);
    *port = ntohs(six.sin6_port); /* same field in both address families */
    return fd;
}

static int connect_one(const struct addrinfo *a, int64_t deadline)
{
    int error = 0;
    socklen_t bytes = sizeof error;
    const int fd = socket(a->ai_family, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    wire_prepare(fd);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        error = ETIMEDOUT;
        if (poll(&p, 1, wait_until(deadline, CONNECT_MS)) > 0)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

int wire_connect(const char *host, int port, int64_t deadline, int *resolve)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char digits[16];
    int fd = -1;
    snprintf(digits, sizeof digits, "%d", port);
    *resolve = getaddrinfo(host, digits, &hints, &found);
    if (*resolve != 0)
        return -1;
    for (const struct addrinfo *a = found; fd < 0 && a; a = a->ai_next)
        fd = connect_one(a, deadline);
    const int error = errno;
    freeaddrinfo(found);
    errno = error;
    return fd;
}

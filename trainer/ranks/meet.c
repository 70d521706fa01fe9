/* SPDX-License-Identifier: Apache-2.0
 *
 * meet.c: see meet.h.
 */
#include "ranks/meet.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "io/error.h"
#include "ranks/greeting.h"

enum { GRACE_MS = 10000, RETRY_MS = 100 };

/* Connection whose process has not identified itself yet; it stores at most GREETING_BYTES. */
struct caller {
    int fd;
    size_t have;
    char *data;
};

/* State of rank 0 until all ranks are there. */
struct gathering {
    struct exchange *x;
    const char *run, *own; /* own: greeting of rank 0 */
    int listener, there, callers;
    int refused; /* number of processes of other runs */
    struct caller caller[MEET_STRANGERS];
};

/* ---- greetings ---- */

static void caller_remove(struct gathering *g, int i, bool keep)
{
    if (!keep)
        close(g->caller[i].fd);
    free(g->caller[i].data);
    memmove(&g->caller[i], &g->caller[i + 1], sizeof *g->caller * (size_t)(--g->callers - i));
}

static int is_gone(int fd)
{
    char byte;
    const ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static void send_away(int fd, const char *sentence)
{
    frame_send(fd, FRAME_FAILED, 0, sentence, strlen(sentence) + 1, now_ms() + SEND_MS);
}

/* Assign the connection to the rank in its greeting; return NULL if that is impossible. */
static struct peer *seat(struct gathering *g, const struct caller *c)
{
    int rank;
    if (greeting_rank(g->own, c->data, &rank) != 0)
        return NULL;
    CHECK(rank > 0 && rank < g->x->peers); /* greeting_rank() has refused others */
    struct peer *p = &g->x->peer[rank];
    if (p->fd >= 0 && !is_gone(p->fd)) {
        fail(NJ_E_ARG, "two processes say that they are rank %d; start all by one launcher", rank);
        return NULL;
    }
    g->there += p->fd < 0;
    peer_close(p);
    *p = (struct peer){.fd = c->fd};
    return p;
}

/* Return whether the greeting is of this run. A process that does not know the run learns
 * nothing of it. */
static bool is_of_run(const struct gathering *g, const struct caller *c)
{
    return greeting_trusted(g->own, c->data) && strcmp(greeting_run(c->data), g->run) == 0;
}

/* Handle a whole greeting: its process becomes a rank, or the error is recorded (and sent to
 * all). */
static void admit(struct gathering *g, int i)
{
    struct exchange *x = g->x;
    const struct caller *c = &g->caller[i];
    const bool late = x->rc != 0; /* whether a failure has already been sent to the ranks so far */
    if (!is_of_run(g, c)) {
        send_away(c->fd,
                  "another run listens on this port, or this process was given another --out "
                  "or NOJIT_SECRET than its rank 0; give all ranks the same, and each run a "
                  "MASTER_PORT of its own");
        caller_remove(g, i, false);
        g->refused++;
        return;
    }
    const struct peer *p = seat(g, c);
    if (!p || greeting_compare(g->own, c->data) != 0)
        exchange_record(x, NJ_E_ARG, 0, fail_text(), -1);
    if (late || !p)
        send_away(c->fd, x->sentence);
    caller_remove(g, i, p != NULL);
}

/* Read the available part of a greeting: return 1 if it is whole, 0 if not yet, -1 if it is not
 * a greeting or its sender is gone. */
static int caller_read(struct caller *c)
{
    for (;;) {
        const size_t whole = greeting_bytes(c->data, c->have);
        if (whole == 0 || c->have == whole)
            return whole == 0 ? -1 : 1;
        const ssize_t got = recv(c->fd, c->data + c->have, whole - c->have, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 && errno == EAGAIN ? 0 : -1;
        c->have += (size_t)got;
    }
}

static int accept_one(struct gathering *g)
{
    const int fd = accept(g->listener, NULL, NULL);
    if (fd < 0)
        return errno != EMFILE && errno != ENFILE
                   ? 0
                   : fail(NJ_E_IO, "%s, at %d of %d ranks; raise ulimit -n", strerror(errno),
                          g->there, g->x->size);
    wire_prepare(fd);
    if (g->callers == MEET_STRANGERS)
        caller_remove(g, 0, false); /* removes the oldest; a rank tries again */
    char *data = malloc(GREETING_BYTES);
    if (!data) {
        close(fd);
        return fail(NJ_E_NOMEM, "no memory for the greeting of a rank");
    }
    g->caller[g->callers++] = (struct caller){.fd = fd, .data = data};
    return 0;
}

static int missing_rank(const struct exchange *x)
{
    int i = 1;
    while (i < x->size && x->peer[i].fd >= 0)
        i++;
    return i;
}

static void poll_callers(struct gathering *g, int wait_ms)
{
    struct exchange *x = g->x;
    x->poll[0] = (struct pollfd){.fd = g->listener, .events = POLLIN};
    for (int i = 0; i < g->callers; i++)
        x->poll[1 + i] = (struct pollfd){.fd = g->caller[i].fd, .events = POLLIN};
    poll(x->poll, 1 + (nfds_t)g->callers, wait_ms);
    for (int i = g->callers - 1; i >= 0; i--) {
        const int got = x->poll[1 + i].revents ? caller_read(&g->caller[i]) : 0;
        if (got > 0)
            admit(g, i);
        else if (got < 0)
            caller_remove(g, i, false);
    }
}

static int end_incomplete(const struct gathering *g, int seconds)
{
    char others[128] = "";
    if (g->refused > 0)
        snprintf(others, sizeof others,
                 "; %d that did had another --out, job or NOJIT_SECRET and were sent away",
                 g->refused);
    fail(NJ_E_IO,
         "%d of %d ranks did not connect within %d s, rank %d is the first; check its output, and "
         "whether its host reaches this one%s",
         g->x->size - g->there, g->x->size, seconds, missing_rank(g->x), others);
    return exchange_record(g->x, NJ_E_IO, 0, fail_text(), -1);
}

/* Accept connections until every rank is there; after a failure only for a while, in which ranks
 * that come learn of it. */
static int gather(struct gathering *g, int seconds)
{
    struct exchange *x = g->x;
    const int64_t began = now_ms(), end = began + (int64_t)seconds * 1000;
    int64_t deadline = end;
    int said = 0;
    while (g->there < x->size) {
        if (x->rc != 0 && deadline == end)
            deadline = now_ms() + wait_until(end, GRACE_MS) / 4;
        if (now_ms() >= deadline)
            break;
        if (x->rc == 0 && word_is_due(began, &said))
            exchange_say(x, "waiting for %d of %d ranks to connect, rank %d is the first",
                         x->size - g->there, x->size, missing_rank(x));
        poll_callers(g, wait_until(deadline, 1000));
        const int rc = x->poll[0].revents ? accept_one(g) : 0;
        if (rc != 0)
            return exchange_record(x, rc, 0, fail_text(), -1);
    }
    if (x->rc == 0 && g->there < x->size)
        return end_incomplete(g, seconds);
    return x->rc != 0 ? fail(x->rc, "%s", x->sentence) : 0;
}

int meet_all(struct exchange *x, const struct meeting *m, const char *own, int listener)
{
    struct gathering g = {.x = x, .run = m->run, .own = own, .listener = listener, .there = 1};
    const int rc = gather(&g, m->seconds);
    while (g.callers > 0)
        caller_remove(&g, 0, false);
    for (int i = 1; rc == 0 && i < x->size; i++)
        frame_send(x->peer[i].fd, FRAME_PAYLOAD, 0, m->payload, m->bytes, now_ms() + SEND_MS);
    return rc;
}

/* ---- the other ranks ---- */

/* Wait for the answer; return 1 for a payload, 0 if no answer like that of rank 0 came, or a
 * failure. */
static int answer(struct exchange *x, int64_t deadline, void *payload, size_t bytes,
                  const char **instead)
{
    struct peer *p = &x->peer[0];
    for (;;) {
        struct pollfd wait = {.fd = p->fd, .events = POLLIN};
        poll(&wait, 1, wait_until(deadline, 1000));
        const int got = frame_receive(p);
        if (got < 0)
            *instead = errno == EPROTO ? "what listens there is not nojit" : strerror(errno);
        if (got < 0 || (got == 0 && now_ms() >= deadline))
            return 0;
        if (got > 0 && p->in.kind == FRAME_PAYLOAD) {
            memcpy(payload, p->in.text, bytes);
            return 1;
        }
        if (got > 0 && p->in.kind == FRAME_FAILED)
            return fail(NJ_E_ARG, "%s", p->in.text);
    }
}

int meet_first(struct exchange *x, const struct meeting *m, const char *own, size_t own_bytes)
{
    const struct place *p = m->place;
    /* The deadline is later than that of rank 0, so that its sentence arrives. */
    const int64_t began = now_ms(), deadline = began + (int64_t)m->seconds * 1000 + GRACE_MS / 2;
    const char *last;
    int said = 0;
    do {
        int resolve = 0;
        last = "no answer";
        x->peer[0] = (struct peer){.fd = wire_connect(p->host, p->port, deadline, &resolve)};
        if (resolve == EAI_MEMORY)
            return fail(NJ_E_NOMEM, "no memory to find rank 0 at %s", p->host);
        if (x->peer[0].fd < 0) {
            last = resolve ? gai_strerror(resolve) : strerror(errno);
        } else if (wire_send(x->peer[0].fd, own, own_bytes, deadline) == 0) {
            const int got = answer(x, deadline, m->payload, m->bytes, &last);
            if (got != 0)
                return got > 0 ? 0 : got;
        }
        peer_close(&x->peer[0]);
        if (word_is_due(began, &said))
            exchange_say(x, "rank %d waits for rank 0 at %s port %d (%s)", p->rank, p->host,
                         p->port, last);
        poll(NULL, 0, wait_until(deadline, RETRY_MS));
    } while (now_ms() < deadline);
    return fail(NJ_E_IO,
                "rank %d did not reach rank 0 at %s port %d within %d s (%s); see what rank 0 "
                "says, and whether MASTER_ADDR names its host",
                p->rank, p->host, p->port, m->seconds, last);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.c: how ranks gather, and the channel that stays open.
 */
#include "ranks/exchange.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/error.h"
#include "ranks/greeting.h"
#include "ranks/wire.h"

/* GREETING_BYTES bounds what is kept of anybody who connects, STRANGERS how many of them there are beside the ranks. */
enum { STRANGERS = 64, GRACE_MS = 10000, SEND_MS = 1000, SHARE_MS = 60000, RETRY_MS = 100 };
/* Signs of life that are due in the time that a rank may be silent. */
enum { BEATS = 12 };

/* Somebody who has connected, and has not said yet who it is. */
struct caller {
    int fd;
    size_t have;
    char *data;
};

struct exchange {
    int rank, size, peers; /* rank 0 has a peer for each rank; another one has rank 0 */
    struct peer *peer;
    struct pollfd *poll;
    bool stop;
    int rc, lost, barriers;
    int trouble; /* the first rank that came to the barrier with some; -1: none */
    int silence; /* seconds, 0: no matter */
    int64_t beat_at, stage;
    char sentence[1024];
    char *shared; /* by rank 0, and not taken yet */
    size_t shared_bytes, shared_room;
};

/* What rank 0 holds until all are there. */
struct gathering {
    struct exchange *x;
    const char *run, *own; /* own: greeting */
    int listener, there, callers;
    struct caller caller[STRANGERS];
};

/* ---- failures ---- */

static void tell(struct exchange *x, uint32_t kind, int rank, const char *text, int except)
{
    for (int i = 0; i < x->peers; i++)
        if (x->peer[i].fd >= 0 && i != except)
            frame_send(x->peer[i].fd, kind, rank, text, strlen(text) + 1, now_ms() + SEND_MS);
}

/* The first failure is the run's. */
static int record(struct exchange *x, int rc, int rank, const char *sentence, int from)
{
    if (x->rc == 0) {
        x->rc = rc;
        snprintf(x->sentence, sizeof x->sentence, "%s", sentence);
        tell(x, FRAME_FAILED, rank, x->sentence, from);
    }
    return fail(x->rc, "%s", x->sentence);
}

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

/* Makes whoever sent the greeting its rank; NULL: it cannot be. */
static struct peer *seat(struct gathering *g, const struct caller *c)
{
    int rank;
    if (greeting_rank(g->own, c->data, &rank) != 0)
        return NULL;
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

/* A whole greeting: its process is a rank, or what is wrong is recorded (and sent to all). */
static void admit(struct gathering *g, int i)
{
    struct exchange *x = g->x;
    const struct caller *c = &g->caller[i];
    const bool late = x->rc != 0; /* those before it have been told */
    if (strcmp(greeting_run(c->data), g->run) != 0) {
        fail(NJ_E_ARG, "another run, '%.200s', listens on this port; set MASTER_PORT to a free one",
             g->run);
        send_away(c->fd, fail_text());
        caller_remove(g, i, false);
        return;
    }
    const struct peer *p = seat(g, c);
    if (!p || greeting_compare(g->own, c->data) != 0)
        record(x, NJ_E_ARG, 0, fail_text(), -1);
    if (late || !p)
        send_away(c->fd, x->sentence);
    caller_remove(g, i, p != NULL);
}

/* Reads of a greeting what is there: 1 whole, 0 not yet, -1: it is none, or its sender is gone. */
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
    if (g->callers == STRANGERS)
        caller_remove(g, 0, false); /* the oldest; a rank tries again */
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

/* Until every rank is there; after a failure for a while only, in which those who come learn of it. */
static int gather(struct gathering *g, int seconds)
{
    struct exchange *x = g->x;
    const int64_t end = now_ms() + (int64_t)seconds * 1000;
    int64_t deadline = end;
    while (g->there < x->size) {
        if (x->rc != 0 && deadline == end)
            deadline = now_ms() + wait_until(end, GRACE_MS) / 4;
        if (now_ms() >= deadline)
            break;
        x->poll[0] = (struct pollfd){.fd = g->listener, .events = POLLIN};
        for (int i = 0; i < g->callers; i++)
            x->poll[1 + i] = (struct pollfd){.fd = g->caller[i].fd, .events = POLLIN};
        poll(x->poll, 1 + (nfds_t)g->callers, wait_until(deadline, 1000));
        for (int i = g->callers - 1; i >= 0; i--) {
            const int got = x->poll[1 + i].revents ? caller_read(&g->caller[i]) : 0;
            if (got > 0)
                admit(g, i);
            else if (got < 0)
                caller_remove(g, i, false);
        }
        const int rc = x->poll[0].revents ? accept_one(g) : 0;
        if (rc != 0)
            return record(x, rc, 0, fail_text(), -1);
    }
    if (x->rc == 0 && g->there < x->size) {
        fail(NJ_E_IO,
             "%d of %d ranks did not connect within %d s, rank %d is the first; see what it "
             "says, and whether its host reaches this one",
             x->size - g->there, x->size, seconds, missing_rank(x));
        record(x, NJ_E_IO, 0, fail_text(), -1);
    }
    return x->rc ? fail(x->rc, "%s", x->sentence) : 0;
}

static int open_first(struct exchange *x, int listener, const char *run, const char *own,
                      int seconds, const void *payload, size_t bytes)
{
    struct gathering g = {.x = x, .run = run, .own = own, .listener = listener, .there = 1};
    const int rc = gather(&g, seconds);
    while (g.callers > 0)
        caller_remove(&g, 0, false);
    for (int i = 1; rc == 0 && i < x->size; i++)
        frame_send(x->peer[i].fd, FRAME_PAYLOAD, 0, payload, bytes, now_ms() + SEND_MS);
    return rc;
}

/* ---- the other ranks ---- */

/* Waits for the answer: 1 payload, 0 nobody answered as rank 0 would, or a failure. */
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

static int open_other(struct exchange *x, const struct place *p, const char *own, size_t own_bytes,
                      int seconds, void *payload, size_t bytes)
{
    /* Longer than rank 0 waits, so that its sentence arrives. */
    const int64_t deadline = now_ms() + (int64_t)seconds * 1000 + GRACE_MS / 2;
    const char *last;
    do {
        int resolve = 0;
        last = "no answer";
        x->peer[0] = (struct peer){.fd = wire_connect(p->host, p->port, deadline, &resolve)};
        if (x->peer[0].fd < 0) {
            last = resolve ? gai_strerror(resolve) : strerror(errno);
        } else if (wire_send(x->peer[0].fd, own, own_bytes, deadline) == 0) {
            const int got = answer(x, deadline, payload, bytes, &last);
            if (got != 0)
                return got > 0 ? 0 : got;
        }
        peer_close(&x->peer[0]);
        poll(NULL, 0, wait_until(deadline, RETRY_MS));
    } while (now_ms() < deadline);
    return fail(NJ_E_IO,
                "rank %d did not reach rank 0 at %s port %d within %d s (%s); see what rank 0 "
                "says, and whether MASTER_ADDR names its host",
                p->rank, p->host, p->port, seconds, last);
}

int exchange_open(const struct place *p, int listener, const char *run, const struct identity *ids,
                  size_t count, int seconds, void *payload, size_t bytes, struct exchange **out)
{
    size_t own_bytes = 0;
    char *own = greeting_make(p, run, ids, count, &own_bytes);
    struct exchange *x = calloc(1, sizeof *x);
    const int peers = p->rank == 0 ? p->size : 1;
    int rc = 0, port = p->port;
    *out = x;
    if (x) {
        *x = (struct exchange){.rank = p->rank, .size = p->size, .lost = -1, .trouble = -1};
        x->peer = calloc((size_t)peers, sizeof *x->peer);
        x->poll = calloc((size_t)peers + STRANGERS + 1, sizeof *x->poll);
    }
    if (!own || !x || !x->peer || !x->poll)
        rc = fail(NJ_E_NOMEM, "no memory for the exchange of %d ranks", p->size);
    for (int i = 0; rc == 0 && i < peers; i++, x->peers++)
        x->peer[i].fd = -1;
    if (rc == 0 && (own_bytes > GREETING_BYTES || bytes > EXCHANGE_PAYLOAD_BYTES))
        rc = fail(NJ_E_ARG, "%zu bytes of identity are more than ranks exchange", own_bytes);
    if (rc == 0 && p->rank > 0)
        rc = open_other(x, p, own, own_bytes, seconds, payload, bytes);
    else if (rc == 0 && p->size > 1 && listener < 0)
        rc = listener = wire_listen(&port, false);
    if (rc >= 0 && p->rank == 0 && p->size > 1)
        rc = open_first(x, listener, run, own, seconds, payload, bytes);
    if (listener >= 0)
        close(listener);
    free(own);
    if (rc != 0) {
        exchange_close(x);
        *out = NULL;
    }
    return rc;
}

/* ---- afterwards ---- */

static void keep_shared(struct exchange *x, const struct frame *f)
{
    if (x->shared_bytes + FRAME_PART > x->shared_room) {
        const size_t room = 2 * (x->shared_bytes + FRAME_PART);
        char *grown = realloc(x->shared, room);
        if (!grown) {
            fail(NJ_E_NOMEM, "rank %d: no memory for what rank 0 shares", x->rank);
            record(x, NJ_E_NOMEM, x->rank, fail_text(), -1);
            return;
        }
        x->shared = grown;
        x->shared_room = room;
    }
    memcpy(x->shared + x->shared_bytes, f->text, FRAME_PART);
    x->shared_bytes += FRAME_PART;
}

/* Rank i, without a word; the sentence is set. */
static void lose(struct exchange *x, int i)
{
    x->lost = x->rc == 0 ? i : x->lost;
    record(x, NJ_E_IO, i, fail_text(), i);
}

/* What comes with a barrier: the number of a rank, or nothing. */
static void note_trouble(struct exchange *x, const char *text)
{
    const int rank = (int)strtol(text, NULL, 10);
    if (*text && (x->trouble < 0 || rank < x->trouble))
        x->trouble = rank;
}

static void handle(struct exchange *x, int i)
{
    struct peer *p = &x->peer[i];
    int got;
    while (p->fd >= 0 && (got = frame_receive(p)) != 0) {
        p->missed = 0;
        if (got < 0) {
            peer_close(p);
            if (!p->finished) {
                fail(NJ_E_IO, "rank %d is gone; see what it says last", i);
                lose(x, i);
            }
        } else if (p->in.kind == FRAME_STOP) {
            exchange_stop(x);
        } else if (p->in.kind == FRAME_FAILED) {
            record(x, NJ_E_IO, (int)p->in.rank, p->in.text, i);
        } else if (p->in.kind == FRAME_FINISHED || p->in.kind == FRAME_HERE) {
            p->finished = p->in.kind == FRAME_FINISHED;
            p->here++;
            note_trouble(x, p->in.text);
        } else if (p->in.kind == FRAME_PAYLOAD) {
            keep_shared(x, &p->in);
        } else if (p->in.kind == FRAME_ALIVE) {
            p->stage = strtoll(p->in.text, NULL, 10);
        }
    }
}

void exchange_silence(struct exchange *x, int seconds)
{
    x->silence = seconds;
}

static void tell_alive(struct exchange *x)
{
    char stage[24];
    snprintf(stage, sizeof stage, "%lld", (long long)x->stage);
    tell(x, FRAME_ALIVE, x->rank, stage, -1);
}

void exchange_reached(struct exchange *x, int64_t stage)
{
    x->stage = stage;
    if (x->rank > 0)
        tell_alive(x);
}

int exchange_behind(const struct exchange *x, int64_t stage)
{
    for (int i = 1; i < x->peers; i++)
        if (x->peer[i].stage < stage)
            return i;
    return -1;
}

/* Time is counted in own beats: a process that was suspended has not waited for anybody. */
static void beat(struct exchange *x)
{
    if (x->silence == 0 || now_ms() < x->beat_at)
        return;
    x->beat_at = now_ms() + x->silence * 1000 / BEATS;
    tell_alive(x);
    for (int i = 0; i < x->peers; i++)
        if (x->peer[i].fd >= 0 && !x->peer[i].finished && ++x->peer[i].missed > BEATS) {
            fail(NJ_E_IO,
                 "rank %d has been silent for %d s: its process is stopped, or its host or network "
                 "is gone",
                 i, x->silence);
            lose(x, i);
        }
}

static int poll_once(struct exchange *x, int wait_ms)
{
    for (int i = 0; i < x->peers; i++)
        x->poll[i] = (struct pollfd){.fd = x->peer[i].fd, .events = POLLIN};
    const int came = poll(x->poll, (nfds_t)x->peers, wait_ms);
    for (int i = 0; came > 0 && i < x->peers; i++)
        if (x->poll[i].revents)
            handle(x, i);
    return came;
}

int exchange_poll(struct exchange *x, int wait_ms)
{
    const int64_t end = now_ms() + wait_ms;
    int came = 0;
    do {
        beat(x);
        if (x->rc == 0)
            came = poll_once(x, wait_until(end, 100));
    } while (x->rc == 0 && came <= 0 && now_ms() < end);
    return x->rc ? fail(x->rc, "%s", x->sentence) : 0;
}

int exchange_lost(const struct exchange *x)
{
    return x->lost;
}

static void send_shared(const struct exchange *x, int rank, const void *data, size_t bytes)
{
    if (x->peer[rank].fd >= 0)
        frames_send(x->peer[rank].fd, FRAME_PAYLOAD, 0, data, bytes, now_ms() + SHARE_MS);
}

static int take_shared(struct exchange *x, void *data, size_t bytes, int seconds)
{
    const size_t whole = (bytes + FRAME_PART - 1) / FRAME_PART * FRAME_PART;
    const int64_t deadline = now_ms() + (int64_t)seconds * 1000;
    int rc = x->rc;
    while (rc == 0 && x->shared_bytes < whole) {
        rc = exchange_poll(x, wait_until(deadline, 1000));
        if (rc == 0 && now_ms() >= deadline && x->shared_bytes < whole) {
            fail(NJ_E_IO, "rank %d has waited %d s for rank 0; see what it says", x->rank, seconds);
            rc = record(x, NJ_E_IO, x->rank, fail_text(), -1);
        }
    }
    if (rc != 0)
        return fail(rc, "%s", x->sentence);
    memcpy(data, x->shared, bytes);
    x->shared_bytes -= whole;
    memmove(x->shared, x->shared + whole, x->shared_bytes);
    return 0;
}

int exchange_share(struct exchange *x, void *data, size_t bytes, int seconds)
{
    if (x->rank > 0)
        return take_shared(x, data, bytes, seconds);
    for (int i = 1; i < x->peers; i++)
        send_shared(x, i, data, bytes);
    return x->rc ? fail(x->rc, "%s", x->sentence) : 0;
}

int exchange_deal(struct exchange *x, int rank, void *data, size_t bytes, int seconds)
{
    if (rank > 0 && x->rank == rank)
        return take_shared(x, data, bytes, seconds);
    if (rank > 0 && x->rank == 0)
        send_shared(x, rank, data, bytes);
    return x->rc ? fail(x->rc, "%s", x->sentence) : 0;
}

bool exchange_stopping(const struct exchange *x)
{
    return x->stop;
}

void exchange_stop(struct exchange *x)
{
    if (!x->stop)
        tell(x, FRAME_STOP, x->rank, "", -1);
    x->stop = true;
}

void exchange_fail(struct exchange *x, const char *sentence)
{
    char text[1024];
    snprintf(text, sizeof text, "rank %d: %s", x->rank, sentence);
    record(x, NJ_E_IO, x->rank, text, -1);
}

static bool all_here(const struct exchange *x)
{
    for (int i = x->rank == 0; i < x->peers; i++)
        if (x->peer[i].here < x->barriers)
            return false;
    return true;
}

/* The others tell rank 0 that they are here, which tells them once all are. */
static void come(struct exchange *x, int kind, bool trouble)
{
    char rank[16] = "";
    if (trouble)
        snprintf(rank, sizeof rank, "%d", x->rank);
    x->barriers++;
    if (x->rank == 0)
        note_trouble(x, rank);
    else
        tell(x, kind, x->rank, rank, -1);
}

static int leave(struct exchange *x, int kind)
{
    const int first = x->trouble;
    char rank[16] = "";
    if (first >= 0)
        snprintf(rank, sizeof rank, "%d", first);
    x->trouble = -1; /* before those who are told come to the next one */
    if (x->rank == 0)
        tell(x, kind, 0, rank, -1);
    return first;
}

static int barrier(struct exchange *x, int kind, int seconds)
{
    const int64_t deadline = now_ms() + (int64_t)seconds * 1000;
    int rc = x->rc;
    come(x, kind, false);
    while (rc == 0 && !all_here(x)) {
        rc = exchange_poll(x, wait_until(deadline, 1000));
        if (rc == 0 && now_ms() >= deadline && !all_here(x)) {
            fail(NJ_E_IO, "not every rank came this far within %d s; see what each says", seconds);
            rc = record(x, NJ_E_IO, x->rank, fail_text(), -1);
        }
    }
    if (rc == 0)
        leave(x, kind);
    return rc ? fail(rc, "%s", x->sentence) : 0;
}

void exchange_come(struct exchange *x, bool trouble)
{
    come(x, FRAME_HERE, trouble);
}

bool exchange_came(struct exchange *x, int *first)
{
    const bool all = all_here(x);
    if (all)
        *first = leave(x, FRAME_HERE);
    return all;
}

int exchange_awaited(const struct exchange *x)
{
    for (int i = x->rank == 0; i < x->peers; i++)
        if (x->peer[i].here < x->barriers)
            return i;
    return x->rank;
}

int exchange_wait(struct exchange *x, int seconds)
{
    return barrier(x, FRAME_HERE, seconds);
}

int exchange_finish(struct exchange *x, int seconds)
{
    return barrier(x, FRAME_FINISHED, seconds);
}

void exchange_close(struct exchange *x)
{
    if (!x)
        return;
    for (int i = 0; i < x->peers; i++)
        peer_close(&x->peer[i]);
    free(x->peer);
    free(x->poll);
    free(x->shared);
    free(x);
}

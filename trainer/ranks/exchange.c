/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.c: the connections between ranks, which stay open after they have met.
 */
#include "ranks/exchange.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/grow.h"
#include "io/error.h"
#include "ranks/exchange_struct.h"
#include "ranks/greeting.h"
#include "ranks/meet.h"
#include "ranks/wire.h"

enum { SHARE_MS = 60000 };
/* Number of signs of life due in the time that a rank may be silent. */
enum { BEATS = 12 };

static bool has_room(const struct exchange *x)
{
    return x && x->peer && x->poll;
}

static struct exchange *make(const struct meeting *m)
{
    const struct place *p = m->place;
    const int peers = p->rank == 0 ? p->size : 1;
    struct exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    *x = (struct exchange){.rank = p->rank,
                           .size = p->size,
                           .lost = -1,
                           .trouble = -1,
                           .say = m->say,
                           .user = m->user};
    x->peer = calloc((size_t)peers, sizeof *x->peer);
    x->poll = calloc((size_t)peers + MEET_STRANGERS + 1, sizeof *x->poll);
    for (int i = 0; x->peer && i < peers; i++, x->peers++)
        x->peer[i].fd = -1;
    return x;
}

int exchange_open(const struct meeting *m, struct exchange **out)
{
    const struct place *p = m->place;
    size_t own_bytes = 0;
    char *own = greeting_make(p, m->run, m->ids, m->count, &own_bytes);
    struct exchange *x = make(m);
    int rc = 0, port = p->port, listener = m->listener;
    if (!own || !has_room(x))
        rc = fail(NJ_E_NOMEM, "no memory for the exchange of %d ranks", p->size);
    if (rc == 0 && (own_bytes > GREETING_BYTES || m->bytes > EXCHANGE_PAYLOAD_BYTES))
        rc = fail(NJ_E_ARG, "%zu bytes of identity are more than ranks exchange", own_bytes);
    if (rc == 0 && p->rank > 0)
        rc = meet_first(x, m, own, own_bytes);
    else if (rc == 0 && p->size > 1 && listener < 0)
        rc = listener = wire_listen(&port, p->host);
    if (rc >= 0 && p->rank == 0 && p->size > 1)
        rc = meet_all(x, m, own, listener);
    if (listener >= 0)
        close(listener);
    free(own);
    if (rc != 0) {
        exchange_close(x);
        x = NULL;
    }
    *out = x;
    return rc;
}

/* ---- after the meeting ---- */

static void keep_shared(struct exchange *x, const struct frame *f)
{
    if (!GROW(x->shared, x->shared_room, x->shared_bytes + FRAME_PART)) {
        fail(NJ_E_NOMEM, "rank %d: no memory for what rank 0 shares", x->rank);
        exchange_record(x, NJ_E_NOMEM, x->rank, fail_text(), -1);
        return;
    }
    memcpy(x->shared + x->shared_bytes, f->text, FRAME_PART);
    x->shared_bytes += FRAME_PART;
}

/* Keep shared data from rank 0; rank 0 itself has no use for data of others, and keeps none. */
static void take_payload(struct exchange *x, int i)
{
    if (x->rank > 0) {
        keep_shared(x, &x->peer[i].in);
        return;
    }
    fail(NJ_E_IO, "rank %d sends what rank 0 alone sends; install the same nojit on all hosts", i);
    exchange_record(x, NJ_E_IO, i, fail_text(), -1);
}

/* Record that rank i is gone without a message; the sentence is set. */
static void lose(struct exchange *x, int i)
{
    x->lost = x->rc == 0 ? i : x->lost;
    exchange_record(x, NJ_E_IO, i, fail_text(), i);
}

/* Record the payload of a barrier: the number of a rank with trouble, or nothing. */
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
                fail(NJ_E_IO, "rank %d is gone; see its last output", i);
                lose(x, i);
            }
        } else if (p->in.kind == FRAME_STOP) {
            exchange_stop(x);
        } else if (p->in.kind == FRAME_FAILED) {
            exchange_record(x, NJ_E_IO, (int)p->in.rank, p->in.text, i);
        } else if (p->in.kind == FRAME_FINISHED || p->in.kind == FRAME_HERE) {
            p->finished = p->in.kind == FRAME_FINISHED;
            p->here++;
            note_trouble(x, p->in.text);
        } else if (p->in.kind == FRAME_PAYLOAD) {
            take_payload(x, i);
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
    exchange_tell(x, FRAME_ALIVE, x->rank, stage, -1);
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

/* Count time in beats of this process: a process that was suspended has not waited for anybody. */
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
    return x->rc != 0 ? fail(x->rc, "%s", x->sentence) : 0;
}

int exchange_lost(const struct exchange *x)
{
    return x->lost;
}

static void send_shared(const struct exchange *x, int rank, const void *data, size_t bytes)
{
    CHECK(x->rank == 0 && rank > 0 && rank < x->peers);
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
            fail(NJ_E_IO, "rank %d has waited %d s for rank 0; check rank 0's output", x->rank,
                 seconds);
            rc = exchange_record(x, NJ_E_IO, x->rank, fail_text(), -1);
        }
    }
    if (rc != 0)
        return fail(rc, "%s", x->sentence);
    CHECK(x->shared_bytes >= whole && x->shared_bytes % FRAME_PART == 0);
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
    return x->rc != 0 ? fail(x->rc, "%s", x->sentence) : 0;
}

int exchange_deal(struct exchange *x, int rank, void *data, size_t bytes, int seconds)
{
    if (rank > 0 && x->rank == rank)
        return take_shared(x, data, bytes, seconds);
    if (rank > 0 && x->rank == 0)
        send_shared(x, rank, data, bytes);
    return x->rc != 0 ? fail(x->rc, "%s", x->sentence) : 0;
}

bool exchange_stopping(const struct exchange *x)
{
    return x->stop;
}

void exchange_stop(struct exchange *x)
{
    if (!x->stop)
        exchange_tell(x, FRAME_STOP, x->rank, "", -1);
    x->stop = true;
}

void exchange_fail(struct exchange *x, const char *sentence)
{
    char text[1024];
    snprintf(text, sizeof text, "rank %d: %s", x->rank, sentence);
    exchange_record(x, NJ_E_IO, x->rank, text, -1);
}

static bool all_here(const struct exchange *x)
{
    for (int i = x->rank == 0; i < x->peers; i++)
        if (x->peer[i].here < x->barriers)
            return false;
    return true;
}

/* Report to rank 0 that this rank is here; rank 0 tells the others once all are. */
static void come(struct exchange *x, int kind, bool trouble)
{
    char rank[16] = "";
    if (trouble)
        snprintf(rank, sizeof rank, "%d", x->rank);
    x->barriers++;
    if (x->rank == 0)
        note_trouble(x, rank);
    else
        exchange_tell(x, kind, x->rank, rank, -1);
}

static int leave(struct exchange *x, int kind)
{
    const int first = x->trouble;
    char rank[16] = "";
    CHECK(all_here(x)); /* a barrier that some pass early holds nobody */
    if (first >= 0)
        snprintf(rank, sizeof rank, "%d", first);
    x->trouble = -1; /* reset before the ranks that are told reach the next barrier */
    if (x->rank == 0)
        exchange_tell(x, kind, 0, rank, -1);
    return first;
}

int exchange_awaited(const struct exchange *x)
{
    for (int i = x->rank == 0; i < x->peers; i++)
        if (x->peer[i].here < x->barriers)
            return i;
    return x->rank;
}

/* Report the awaited rank; only rank 0 is told when each rank comes. */
void exchange_say_awaited(struct exchange *x, int64_t began, int *said)
{
    if (x->rank == 0 && !all_here(x) && word_is_due(began, said))
        exchange_say(x, "waiting for rank %d", exchange_awaited(x));
}

static int barrier(struct exchange *x, int kind, int seconds)
{
    const int64_t began = now_ms(), deadline = began + (int64_t)seconds * 1000;
    int rc = x->rc, said = 0;
    come(x, kind, false);
    while (rc == 0 && !all_here(x)) {
        rc = exchange_poll(x, wait_until(deadline, 1000));
        exchange_say_awaited(x, began, &said);
        if (rc == 0 && now_ms() >= deadline && !all_here(x)) {
            fail(NJ_E_IO,
                 "some ranks did not reach this point within %d s; check each rank's output",
                 seconds);
            rc = exchange_record(x, NJ_E_IO, x->rank, fail_text(), -1);
        }
    }
    if (rc == 0)
        leave(x, kind);
    return rc != 0 ? fail(rc, "%s", x->sentence) : 0;
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * group.c: see group.h. While the main thread computes, or waits for a GPU that waits for a rank
 * that is gone, another thread listens to the exchange.
 */
#include "ranks/group.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/error.h"
#include "io/waits.h"
#include "ranks/supervisor.h"
#include "ranks/wire.h"

enum { WATCH_MS = 50, SHARE_SECONDS = 24 * 3600, FINISH_SECONDS = 24 * 3600 };

/* State shared by the two threads. */
struct link {
    struct exchange *exchange;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all fields below; the thread that ends the process keeps it */
    bool finished;
    char what[64]; /* operation expected of all ranks, the one with number `stage` */
    const char *setting;
    int64_t stage;
    int seconds,
        left_ms; /* time left, in turns of the thread, which stop if it is suspended; 0: no limit */
};

bool group_leads(const struct group *g)
{
    return g->place.rank == 0;
}

/* ---- finding the ranks ---- */

/* Find the number of ranks that this process is to start, from --gpus and the launcher's
 * processes. */
static int ranks_to_make(const struct place *p, int gpus, int *out)
{
    *out = gpus;
    if (gpus <= 1 || p->local_size == 1)
        return 0;
    *out = 1;
    if (gpus == p->local_size)
        return 0;
    return fail(NJ_E_ARG, "--gpus %d: %s started %d processes on this host; leave --gpus out", gpus,
                p->launcher, p->local_size);
}

static int quiet(const struct group *g)
{
    if (!group_leads(g) && freopen("/dev/null", "w", stdout) == NULL)
        return fail(NJ_E_IO, "/dev/null cannot be opened");
    return 0;
}

int group_find(struct group *g, const char *command, int gpus)
{
    struct place base;
    int count = 1, rc = launcher_find(&base);
    *g = (struct group){.command = command};
    if (rc == 0)
        rc = ranks_to_make(&base, gpus, &count);
    if (rc != 0)
        return rc;
    struct rank self = {.place = base, .listener = -1, .supervisor = -1};
    if (count > 1)
        g->parent = !supervise(&base, count, &self, &rc);
    g->place = self.place;
    g->listener = self.listener;
    g->supervisor = self.supervisor;
    return rc != 0 || g->parent ? rc : quiet(g);
}

/* ---- failures ---- */

/* End the process without releasing GPU resources, which may wait for a rank that is gone. */
static void end(const struct group *g, int code)
{
    if (g->leave)
        g->leave(g->user);
    fflush(NULL);
    _exit(fail_status(code));
}

static void say(const struct group *g, int code)
{
    if (g->supervisor >= 0)
        supervised_fail(g->supervisor, g->place.rank, code, !g->link, fail_text());
    else
        fprintf(stderr, "nojit %s: %s\n", g->command, fail_text());
}

/* End the process after a failure of another rank. A rank that failed reports why itself; for
 * one that is gone without a message, the first remaining rank does. */
static void end_by_another(const struct group *g, int code)
{
    const int first = exchange_lost(g->link->exchange) == 0 ? 1 : 0;
    if (exchange_lost(g->link->exchange) >= 0 && g->place.rank == first)
        say(g, code);
    end(g, code);
}

/* Report why the run ends, here and to the other ranks, and end this process. */
static void fail_all(const struct group *g, int code, const char *why)
{
    fail(code, g->supervisor >= 0 ? "%s" : "rank %2$d: %1$s", why, g->place.rank);
    say(g, code);
    if (g->link)
        exchange_fail(g->link->exchange, why);
    end(g, code);
}

/* Return how long a failure waits for that of another rank, which is the cause: a device fails
 * when a rank that it waits for is gone. */
static int patience_ms(int code)
{
    return code == NJ_ELSEWHERE ? 600000 : code == NJ_E_DEVICE ? 2000 : 0;
}

/* Wait for the failure of another rank, ignoring the signs of life that come meanwhile. */
static int hear_cause(struct exchange *x, int ms)
{
    const int64_t end = now_ms() + ms;
    int rc;
    do
        rc = exchange_poll(x, wait_until(end, WATCH_MS));
    while (rc == 0 && now_ms() < end);
    return rc;
}

void group_fail(struct group *g, int code)
{
    char why[1024];
    if (g->place.size == 1)
        return;
    snprintf(why, sizeof why, "%s", fail_text());
    if (g->link) {
        pthread_mutex_lock(&g->link->mutex);
        if (hear_cause(g->link->exchange, patience_ms(code)) != 0)
            end_by_another(g, code);
    }
    fail_all(g, code, why);
}

/* ---- deadlines ---- */

static void end_overdue(const struct group *g)
{
    const struct link *l = g->link;
    const int behind = exchange_behind(l->exchange, l->stage);
    char why[512];
    if (behind >= 0)
        snprintf(
            why, sizeof why,
            "%s has not ended after %d s: rank %d has not begun it. It is late, for example "
            "because of "
            "a slow disk, or its GPU hangs; see its output and dmesg for Xid on its host, then "
            "continue with --resume auto, or allow more time with %s",
            l->what, l->seconds, behind, l->setting);
    else
        snprintf(why, sizeof why,
                 "%s: no progress for %d s on any rank: a GPU hangs, or a link between GPUs; see "
                 "dmesg for Xid and `nojit doctor --gpus`, then continue with --resume auto, or "
                 "allow more time with %s",
                 l->what, l->seconds, l->setting);
    fail_all(g, NJ_E_DEVICE, why);
}

static void end_unread(const struct group *g)
{
    const struct link *l = g->link;
    char why[512];
    snprintf(why, sizeof why,
             "%s has not ended after %d s: rank %d has not read its data: a disk or a file system "
             "hangs; see dmesg on its host, then continue with --resume auto, or allow more time "
             "with %s",
             l->what, l->seconds, exchange_awaited(l->exchange), l->setting);
    fail_all(g, NJ_E_IO, why);
}

static bool is_overdue(struct link *l, int ms)
{
    if (l->left_ms == 0)
        return false;
    l->left_ms -= ms;
    return l->left_ms <= 0;
}

void group_expect(struct group *g, const char *what, int seconds, const char *setting)
{
    struct link *l = g->link;
    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    snprintf(l->what, sizeof l->what, "%s", what);
    l->setting = setting;
    l->seconds = group_leads(g) ? seconds : 0;
    l->left_ms = l->seconds * 1000;
    exchange_reached(l->exchange, ++l->stage);
    pthread_mutex_unlock(&l->mutex);
}

static void set_left(struct group *g, bool moves)
{
    if (!g->link)
        return;
    pthread_mutex_lock(&g->link->mutex);
    g->link->left_ms = moves ? g->link->seconds * 1000 : 0;
    pthread_mutex_unlock(&g->link->mutex);
}

void group_moved(struct group *g)
{
    set_left(g, true);
}

void group_done(struct group *g)
{
    set_left(g, false);
    if (!g->link)
        return;
    pthread_mutex_lock(&g->link->mutex);
    g->link->what[0] = '\0';
    pthread_mutex_unlock(&g->link->mutex);
}

/* Name the rank that has not begun the operation that rank 0 waits for, if there is one. The
 * mutex must be held. */
static void name_behind(const struct group *g)
{
    const struct link *l = g->link;
    wait_behind(group_leads(g) && l->what[0] != '\0' ? exchange_behind(l->exchange, l->stage) : -1);
}

static void *watch(void *group)
{
    const struct group *g = group;
    struct link *l = g->link;
    for (bool over = false; !over; poll(NULL, 0, WATCH_MS)) {
        pthread_mutex_lock(&l->mutex);
        over = l->finished;
        const int rc = over ? 0 : exchange_poll(l->exchange, 0);
        if (rc != 0)
            end_by_another(g, rc);
        if (!over && is_overdue(l, WATCH_MS))
            end_overdue(g);
        if (!over)
            name_behind(g);
        pthread_mutex_unlock(&l->mutex);
    }
    return NULL;
}

/* ---- joint operations ---- */

static void link_free(struct group *g)
{
    if (!g->link)
        return;
    exchange_close(g->link->exchange);
    pthread_mutex_destroy(&g->link->mutex);
    free(g->link);
    g->link = NULL;
}

static int link_start(struct group *g)
{
    pthread_mutex_init(&g->link->mutex, NULL);
    if (pthread_create(&g->link->thread, NULL, watch, g) != 0)
        return fail(NJ_E_NOMEM, "no thread to listen to the other ranks");
    return 0;
}

int group_meet(struct group *g, struct meeting m)
{
    int silence;
    if (g->place.size == 1)
        return 0;
    TRY(launcher_seconds(&m.seconds, &silence));
    struct link *l = calloc(1, sizeof *l);
    if (!l)
        return fail(NJ_E_NOMEM, "no memory for the exchange of ranks");
    m.place = &g->place;
    m.listener = g->listener;
    g->listener = -1;
    const int rc = exchange_open(&m, &l->exchange);
    if (rc != 0) {
        free(l);
        return rc;
    }
    g->link = l;
    exchange_silence(l->exchange, silence);
    return link_start(g);
}

static void begin_share(const struct group *g)
{
    wait_begin(group_leads(g) ? "sending other ranks what was read"
                              : "waiting for what rank 0 reads");
}

int group_share(struct group *g, void *data, size_t bytes)
{
    if (!g->link)
        return 0;
    pthread_mutex_lock(&g->link->mutex);
    begin_share(g);
    const int rc = exchange_share(g->link->exchange, data, bytes, SHARE_SECONDS);
    wait_end();
    if (rc != 0)
        end_by_another(g, rc);
    pthread_mutex_unlock(&g->link->mutex);
    return 0;
}

int group_deal(struct group *g, int rank, void *data, size_t bytes)
{
    if (!g->link)
        return 0;
    pthread_mutex_lock(&g->link->mutex);
    begin_share(g);
    const int rc = exchange_deal(g->link->exchange, rank, data, bytes, SHARE_SECONDS);
    wait_end();
    if (rc != 0)
        end_by_another(g, rc);
    pthread_mutex_unlock(&g->link->mutex);
    return 0;
}

int group_share_text(struct group *g, char **text)
{
    size_t bytes = group_leads(g) ? strlen(*text) + 1 : 0;
    int rc = group_share(g, &bytes, sizeof bytes);
    if (rc != 0 || !g->link)
        return rc;
    if (!group_leads(g))
        *text = malloc(bytes);
    if (!*text)
        return fail(NJ_E_NOMEM, "no memory for %zu bytes of rank 0", bytes);
    return group_share(g, *text, bytes);
}

int group_wait(struct group *g)
{
    if (!g->link)
        return 0;
    pthread_mutex_lock(&g->link->mutex);
    const int rc = exchange_wait(g->link->exchange, SHARE_SECONDS);
    if (rc != 0)
        end_by_another(g, rc);
    pthread_mutex_unlock(&g->link->mutex);
    return 0;
}

/* Agree with the other ranks. While rank 0 waits here, its thread cannot see overdue operations. */
static int agree(const struct group *g, int *first)
{
    struct link *l = g->link;
    const int64_t began = now_ms();
    int said = 0;
    while (!exchange_came(l->exchange, first)) {
        const int64_t from = now_ms();
        TRY(exchange_poll(l->exchange, WATCH_MS));
        exchange_say_awaited(l->exchange, began, &said);
        const int64_t waited = now_ms() - from;
        if (is_overdue(l, waited < WATCH_MS ? (int)waited : WATCH_MS))
            end_unread(g);
    }
    return 0;
}

int group_agree(struct group *g, bool trouble, int *first)
{
    *first = trouble ? g->place.rank : -1;
    if (!g->link)
        return 0;
    pthread_mutex_lock(&g->link->mutex);
    exchange_come(g->link->exchange, trouble);
    const int rc = agree(g, first);
    if (rc != 0)
        end_by_another(g, rc);
    pthread_mutex_unlock(&g->link->mutex);
    return 0;
}

int group_finish(struct group *g)
{
    struct link *l = g->link;
    if (!l)
        return 0;
    pthread_mutex_lock(&l->mutex);
    l->finished = true;
    pthread_mutex_unlock(&l->mutex);
    pthread_join(l->thread, NULL);
    const int rc = exchange_finish(l->exchange, FINISH_SECONDS);
    if (rc != 0)
        end_by_another(g, rc);
    link_free(g);
    return 0;
}

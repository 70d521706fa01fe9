/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_fixture.h: ranks as processes over loopback, and the messages of each.
 */
#ifndef NOJIT_TESTS_EXCHANGE_FIXTURE_H
#define NOJIT_TESTS_EXCHANGE_FIXTURE_H

#include "io/error.h"
#include "ranks/exchange.h"
#include "ranks/greeting.h"
#include "ranks/wire.h"
#include "unit.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MOST = 65, THREE = 3 };

struct member {
    struct place place;
    const char *run, *lr;
    int listener, seconds;
    bool absent, other_version;
    const struct result *follows; /* rank to wait for: this one starts after it has ended */
    const struct result *late;    /* rank to wait for: this one starts a while after it */
    /* rank to wait for: this one starts when it has reported that it waits */
    const struct result *waited;
};
static struct result {
    int rc;
    char text[1024], payload[EXCHANGE_PAYLOAD_BYTES];
    char word[512]; /* name of the thing that the rank waits for */
    bool begun, stopping;
} * result;

typedef void (*plant_fn)(struct member *m, int i);
typedef int (*after_fn)(struct exchange *x, int rank);

static int finish(struct exchange *x, int rank)
{
    (void)rank;
    return exchange_finish(x, 20);
}

static char *greeting_of(const struct member *m, size_t *bytes)
{
    const struct identity ids[] = {{"nojit version", "1"}, {"--lr", m->lr}};
    char *data = greeting_make(&m->place, m->run, ids, 2, bytes);
    assert_non_null(data);
    return data;
}

/* Send the greeting of a nojit with another version of the protocol, and receive the answer. */
static int greet_by_other_version(const struct member *m, struct result *r)
{
    int resolve;
    size_t bytes;
    char *data = greeting_of(m, &bytes);
    data[7]++;
    struct peer p = {.fd = wire_connect(m->place.host, m->place.port, now_ms() + 20000, &resolve)};
    struct pollfd wait = {.fd = p.fd, .events = POLLIN};
    int got = wire_send(p.fd, data, bytes, now_ms() + 20000);
    while (got == 0 && poll(&wait, 1, 20000) > 0)
        got = frame_receive(&p);
    if (got > 0)
        snprintf(r->text, sizeof r->text, "%s", p.in.text);
    free(data);
    peer_close(&p);
    return -1;
}

static void keep_word(void *r, const char *line)
{
    snprintf(((struct result *)r)->word, sizeof result->word, "%s", line);
}

static void member_run(const struct member *m, struct result *r, after_fn after)
{
    const struct identity ids[] = {{"nojit version", "1"}, {"--lr", m->lr}};
    struct exchange *x = NULL;
    alarm(60);
    while (m->follows && *(const volatile int *)&m->follows->rc == 0)
        usleep(1000);
    while (m->late && !*(const volatile bool *)&m->late->begun)
        usleep(1000);
    usleep(m->late ? 300000 : 0);
    while (m->waited && !*(const volatile char *)m->waited->word)
        usleep(1000);
    r->begun = true;
    if (m->other_version) {
        r->rc = greet_by_other_version(m, r);
        _exit(0);
    }
    if (m->place.rank == 0)
        memset(r->payload, 'p', sizeof r->payload);
    const struct meeting meeting = {.place = &m->place,
                                    .listener = m->listener,
                                    .run = m->run,
                                    .ids = ids,
                                    .count = 2,
                                    .seconds = m->seconds,
                                    .payload = r->payload,
                                    .bytes = sizeof r->payload,
                                    .say = keep_word,
                                    .user = r};
    r->rc = exchange_open(&meeting, &x);
    if (r->rc == 0)
        r->rc = after(x, m->place.rank);
    if (r->rc != 0)
        snprintf(r->text, sizeof r->text, "%s", fail_text());
    if (x)
        r->stopping = exchange_stopping(x);
    exchange_close(x);
    _exit(0);
}

/* Run `count` processes of a run of `size` ranks; none is left at the end. */
static void run_on(int listener, int port, int count, int size, plant_fn plant, after_fn after)
{
    pid_t child[MOST];
    memset(result, 0, MOST * sizeof *result);
    for (int i = 0; i < count; i++) {
        struct member m = {.place = {.rank = i, .size = size, .port = port, .host = "127.0.0.1"},
                           .run = "run",
                           .lr = "1e-4",
                           .listener = i == 0 ? listener : -1,
                           .seconds = 30};
        if (plant)
            plant(&m, i);
        child[i] = m.absent ? 0 : fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0 && !m.absent) {
            if (i > 0 && listener >= 0)
                close(listener);
            member_run(&m, &result[i], after);
        }
    }
    if (listener >= 0)
        close(listener);
    for (int i = 0; i < count; i++) {
        int status = 0;
        if (child[i] > 0)
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
}

static void run(int count, int size, plant_fn plant, after_fn after)
{
    int port = 0;
    const int listener = wire_listen(&port, "127.0.0.1");
    assert_true(listener >= 0 && port > 0);
    run_on(listener, port, count, size, plant, after);
}

static void check_all(int count, int rc, const char *part)
{
    for (int i = 0; i < count; i++)
        if ((result[i].rc == 0) != (rc == 0) || !strstr(result[i].text, part))
            fail_msg("process %d: %d \"%s\", not \"%s\"", i, result[i].rc, result[i].text, part);
}

static int poll_until_failure(struct exchange *x)
{
    int rc = 0;
    while (rc == 0)
        rc = exchange_poll(x, 100);
    return rc;
}

static int begin(void **state)
{
    (void)state;
    result = mmap(NULL, MOST * sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
    return result == MAP_FAILED;
}

#endif

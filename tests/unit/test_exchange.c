/* SPDX-License-Identifier: Apache-2.0
 *
 * test_exchange.c: ranks as processes over loopback: they find each other, differences and faults are named on
 * every rank, and nobody who connects keeps them from it.
 */
#include "io/error.h"
#include "ranks/exchange.h"
#include "ranks/greeting.h"
#include "ranks/wire.h"
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { MOST = 65, THREE = 3 };

struct member {
    struct place place;
    const char *run, *lr;
    int listener, seconds;
    bool absent, other_version;
    const struct result *follows; /* begins when that one has ended */
    const struct result *late;    /* begins a while after that one */
};
static struct result {
    int rc;
    char text[1024], payload[EXCHANGE_PAYLOAD_BYTES];
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

/* What a nojit with another version of the protocol says, and what it is told. */
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
    r->begun = true;
    if (m->other_version) {
        r->rc = greet_by_other_version(m, r);
        _exit(0);
    }
    if (m->place.rank == 0)
        memset(r->payload, 'p', sizeof r->payload);
    r->rc = exchange_open(&m->place, m->listener, m->run, ids, 2, m->seconds, r->payload,
                          sizeof r->payload, &x);
    if (r->rc == 0)
        r->rc = after(x, m->place.rank);
    if (r->rc != 0)
        snprintf(r->text, sizeof r->text, "%s", fail_text());
    if (x)
        r->stopping = exchange_stopping(x);
    exchange_close(x);
    _exit(0);
}

/* Runs `count` processes of a run of `size`; none is left at the end. */
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
    const int listener = wire_listen(&port, true);
    assert_true(listener >= 0 && port > 0);
    run_on(listener, port, count, size, plant, after);
}

static void check_all(int count, int rc, const char *part)
{
    for (int i = 0; i < count; i++)
        if ((result[i].rc == 0) != (rc == 0) || !strstr(result[i].text, part))
            fail_msg("process %d: %d \"%s\", not \"%s\"", i, result[i].rc, result[i].text, part);
}

static void ranks_find_each_other(void **state)
{
    const int sizes[] = {1, 2, 3, 64};
    (void)state;
    for (int s = 0; s < 4; s++) {
        run(sizes[s], sizes[s], NULL, finish);
        check_all(sizes[s], 0, "");
        for (int i = 0; i < sizes[s]; i++)
            assert_memory_equal(result[i].payload, result[0].payload, sizeof result->payload);
        assert_int_equal(result[0].payload[EXCHANGE_PAYLOAD_BYTES - 1], 'p');
    }
}

static void over_ipv6(struct member *m, int i)
{
    (void)i;
    snprintf(m->place.host, sizeof m->place.host, "::1");
}

/* A port that was free a moment ago. */
static int free_port(void)
{
    int port = 0;
    const int listener = wire_listen(&port, true);
    assert_true(listener >= 0);
    close(listener);
    return port;
}

static void ranks_meet_over_ipv6(void **state)
{
    const struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_STREAM, 0);
    const bool there = fd >= 0 && bind(fd, (const struct sockaddr *)&here, sizeof here) == 0;
    (void)state;
    if (fd >= 0)
        close(fd);
    if (!there)
        skip();
    run_on(-1, free_port(), 3, 3, over_ipv6, finish);
    check_all(3, 0, "");
}

static void late_first(struct member *m, int i)
{
    m->late = i == 0 ? &result[2] : NULL;
}

static void rank_0_that_is_late_is_waited_for(void **state)
{
    (void)state;
    run_on(-1, free_port(), 3, 3, late_first, finish);
    check_all(3, 0, "");
}

/* Sizes about that of a frame, some of them taken late. */
static int share(struct exchange *x, int rank)
{
    const size_t sizes[] = {1, 1023, 1024, 1025, 100000};
    char *data = malloc(100000), *want = malloc(100000);
    int rc = 0;
    if (rank == 2)
        usleep(20000);
    for (int s = 0; rc == 0 && s < 5; s++) {
        memset(want, 'a' + s, sizes[s]);
        memset(data, rank == 0 ? 'a' + s : 0, sizes[s]);
        want[sizes[s] - 1] = 'z';
        data[sizes[s] - 1] = rank == 0 ? 'z' : 0;
        rc = exchange_share(x, data, sizes[s], 20);
        if (rc == 0 && memcmp(data, want, sizes[s]) != 0)
            rc = NJ_E_FORMAT;
    }
    free(data);
    free(want);
    return rc ? rc : exchange_finish(x, 20);
}

static void what_rank_0_shares_all_get(void **state)
{
    (void)state;
    run(3, 3, NULL, share);
    check_all(3, 0, "");
}

/* Rank 1 gets bytes of its own, rank 0 keeps its own. */
static int deal(struct exchange *x, int rank)
{
    char data[5000] = "", all[8] = "";
    int rc = 0;
    for (int i = 0; rc == 0 && i < THREE; i++) {
        if (rank == 0)
            memset(data, 'a' + i, sizeof data);
        rc = exchange_deal(x, i, data, sizeof data, 20);
        if (rc == 0 && rank == i && (data[0] != 'a' + i || data[sizeof data - 1] != 'a' + i))
            rc = NJ_E_FORMAT;
        snprintf(all, sizeof all, rank == 0 ? "all" : "");
        if (rc == 0)
            rc = exchange_share(x, all, sizeof all, 20);
        if (rc == 0 && strcmp(all, "all") != 0)
            rc = NJ_E_FORMAT;
    }
    return rc ? rc : exchange_finish(x, 20);
}

static void each_gets_what_is_dealt_to_it(void **state)
{
    (void)state;
    run(THREE, THREE, NULL, deal);
    check_all(THREE, 0, "");
}

/* Rank 2 comes later than the others. */
static int stages(struct exchange *x, int rank)
{
    int rc = 0;
    for (int turn = 0; rc == 0 && turn < 2; turn++) {
        if (rank == 2 ? turn == 1 : turn == 0)
            exchange_reached(x, 7);
        rc = exchange_wait(x, 20);
        if (rc == 0 && rank == 0 && exchange_behind(x, 7) != (turn == 0 ? 2 : -1))
            rc = NJ_E_FORMAT;
    }
    return rc ? rc : exchange_finish(x, 20);
}

static void who_is_behind_is_known(void **state)
{
    (void)state;
    run(THREE, THREE, NULL, stages);
    check_all(THREE, 0, "");
}

static void other_lr(struct member *m, int i)
{
    if (i == 2)
        m->lr = "2e-4";
}

static void first_difference_is_named(void **state)
{
    (void)state;
    run(4, 4, other_lr, finish);
    check_all(4, -1, "--lr is '2e-4' on rank 2 but '1e-4' on rank 0; it must");
}

static void same_number(struct member *m, int i)
{
    m->seconds = 2;
    if (i == 2)
        m->place.rank = 1;
}

static void wrong_size(struct member *m, int i)
{
    m->seconds = 2;
    if (i == 2)
        m->place.size = 4;
}

static void other_version(struct member *m, int i)
{
    m->seconds = 2;
    m->other_version = i == 2;
}

static void other_versions_are_named(void **state)
{
    (void)state;
    run(3, 3, other_version, finish);
    check_all(3, -1,
              "rank 2 greets by version 2 of the protocol of ranks but rank 0 has version 1; "
              "install");
}

static void out_of_range(struct member *m, int i)
{
    m->seconds = 2;
    if (i == 2)
        m->place.rank = 5;
}

static void wrong_numbers_are_named(void **state)
{
    (void)state;
    run(3, 3, same_number, finish);
    check_all(3, -1, "two processes say that they are rank 1; start");
    run(3, 3, wrong_size, finish);
    check_all(3, -1, "rank 2 counts 4 ranks but rank 0 counts 3; start");
    run(3, 3, out_of_range, finish);
    check_all(3, -1, "a process says that it is rank 5 of 3");
}

static void one_absent(struct member *m, int i)
{
    m->seconds = 1;
    m->absent = i == 1;
}

static void missing_rank_is_named(void **state)
{
    (void)state;
    run(3, 3, one_absent, finish);
    assert_non_null(strstr(result[0].text, "1 of 3 ranks did not connect within 1 s, rank 1 is"));
    assert_string_equal(result[2].text, result[0].text);
}

static void other_run(struct member *m, int i)
{
    if (i == 1)
        m->follows = &result[3];
    if (i == 3) {
        m->run = "other";
        m->place.rank = 1;
    }
}

static void other_run_is_sent_away(void **state)
{
    (void)state;
    run(4, 3, other_run, finish);
    check_all(3, 0, "");
    assert_non_null(strstr(result[3].text, "another run, 'run', listens on this port"));
}

/* What those say who are no ranks; the last claims to be one, and stops. */
static void stranger_speaks(int fd, int i)
{
    const struct member m = {.place = {.rank = 1, .size = 3}, .run = "run", .lr = "1e-4"};
    static const char *const words[] = {"", "nojit", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"};
    size_t bytes;
    char *greeting = greeting_of(&m, &bytes);
    if (i % 4 == 3)
        assert_int_equal(send(fd, greeting, bytes - 1, 0), bytes - 1);
    else
        assert_int_equal(send(fd, words[i % 4], strlen(words[i % 4]), 0), strlen(words[i % 4]));
    free(greeting);
}

static void strangers_do_not_block(void **state)
{
    int port = 0, stranger[100];
    const int listener = wire_listen(&port, true);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    (void)state;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 100; i++) {
        stranger[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(stranger[i], (struct sockaddr *)&to, sizeof to), 0);
        stranger_speaks(stranger[i], i);
    }
    run_on(listener, port, 3, 3, NULL, finish);
    check_all(3, 0, "");
    for (int i = 0; i < 100; i++)
        close(stranger[i]);
}

static void ranks_of_one_host_listen_there_alone(void **state)
{
    struct sockaddr_in at = {0};
    socklen_t bytes = sizeof at;
    int port = 0;
    const int listener = wire_listen(&port, true);
    (void)state;
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(at.sin_family, AF_INET);
    assert_int_equal(ntohl(at.sin_addr.s_addr), INADDR_LOOPBACK);
    close(listener);
}

static void taken_port_is_named(void **state)
{
    int port = 0, again;
    const int listener = wire_listen(&port, true);
    (void)state;
    again = port;
    check_refused(wire_listen(&again, true), NJ_E_IO, "set MASTER_PORT to a free one", "port");
    close(listener);
}

/* Something else that listens: answers, and waits for more. */
static pid_t foreign_server(int *port)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    *port = 0;
    const int listener = wire_listen(port, true);
    const pid_t pid = fork();
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    assert_true(listener >= 0 && pid >= 0);
    if (pid > 0) {
        close(listener);
        return pid;
    }
    alarm(60);
    while (poll(&wait, 1, -1) > 0)
        send(accept(listener, NULL, NULL), answer, sizeof answer - 1, MSG_NOSIGNAL);
    _exit(0);
}

static int foreign_port;

static void nobody(struct member *m, int i)
{
    m->absent = i == 0;
    m->seconds = 1;
    m->place.port = i == 2 ? foreign_port : m->place.port;
}

static void rank_0_that_is_not_there(void **state)
{
    (void)state;
    const pid_t server = foreign_server(&foreign_port);
    run_on(-1, free_port(), 3, 3, nobody, finish);
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
    assert_non_null(strstr(result[1].text, "rank 1 did not reach rank 0 at 127.0.0.1 port"));
    assert_non_null(strstr(result[2].text, "within 1 s (what listens there is not nojit); see"));
}

static int wait_for_stop(struct exchange *x, int rank)
{
    int rc = 0;
    if (rank == 2)
        exchange_stop(x);
    while (rc == 0 && !exchange_stopping(x))
        rc = exchange_poll(x, 100);
    return rc ? rc : exchange_finish(x, 20);
}

static void stop_reaches_all(void **state)
{
    (void)state;
    run(4, 4, NULL, wait_for_stop);
    check_all(4, 0, "");
    for (int i = 0; i < 4; i++)
        assert_true(result[i].stopping);
}

static int poll_until_failure(struct exchange *x)
{
    int rc = 0;
    while (rc == 0)
        rc = exchange_poll(x, 100);
    return rc;
}

static int fail_one(struct exchange *x, int rank)
{
    if (rank == 2)
        exchange_fail(x, "disk full");
    return poll_until_failure(x);
}

static int end_one(struct exchange *x, int rank)
{
    if (rank == 2)
        _exit(0);
    return poll_until_failure(x);
}

/* Its connection, half a frame on it, and a reset. */
static int reset_one(struct exchange *x, int rank)
{
    static const unsigned char half[500] = {0x01, 0x46, 0x6a, 0x6e};
    const struct linger at_once = {.l_onoff = 1};
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    int fd = 3;
    if (rank != 2)
        return poll_until_failure(x);
    while (fd < 1024 && getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0)
        fd++;
    if (send(fd, half, sizeof half, 0) == sizeof half &&
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0)
        _exit(0);
    return poll_until_failure(x);
}

static int end_first(struct exchange *x, int rank)
{
    if (rank == 0)
        _exit(0);
    return poll_until_failure(x);
}

static void failures_reach_all(void **state)
{
    (void)state;
    run(4, 4, NULL, fail_one);
    check_all(4, -1, "rank 2: disk full");
    const after_fn ends[] = {end_one, reset_one};
    for (int i = 0; i < 2; i++) {
        run(4, 4, NULL, ends[i]);
        assert_int_equal(result[2].rc, 0);
        snprintf(result[2].text, sizeof result->text, "rank 2 is gone");
        result[2].rc = -1;
        check_all(4, -1, "rank 2 is gone");
    }
    run(4, 4, NULL, end_first);
    snprintf(result[0].text, sizeof result->text, "rank 0 is gone");
    result[0].rc = -1;
    check_all(4, -1, "rank 0 is gone");
}

static int one_does_not_finish(struct exchange *x, int rank)
{
    return rank == 2 ? poll_until_failure(x) : exchange_finish(x, 1);
}

static void ends_are_waited_for(void **state)
{
    (void)state;
    run(3, 3, NULL, one_does_not_finish);
    check_all(3, -1, "not every rank came this far within 1 s");
}

static int begin(void **state)
{
    (void)state;
    result = mmap(NULL, MOST * sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
    return result == MAP_FAILED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_find_each_other),
        cmocka_unit_test(ranks_meet_over_ipv6),
        cmocka_unit_test(rank_0_that_is_late_is_waited_for),
        cmocka_unit_test(other_versions_are_named),
        cmocka_unit_test(what_rank_0_shares_all_get),
        cmocka_unit_test(each_gets_what_is_dealt_to_it),
        cmocka_unit_test(who_is_behind_is_known),
        cmocka_unit_test(first_difference_is_named),
        cmocka_unit_test(wrong_numbers_are_named),
        cmocka_unit_test(missing_rank_is_named),
        cmocka_unit_test(other_run_is_sent_away),
        cmocka_unit_test(strangers_do_not_block),
        cmocka_unit_test(ranks_of_one_host_listen_there_alone),
        cmocka_unit_test(taken_port_is_named),
        cmocka_unit_test(rank_0_that_is_not_there),
        cmocka_unit_test(stop_reaches_all),
        cmocka_unit_test(failures_reach_all),
        cmocka_unit_test(ends_are_waited_for),
    };
    return cmocka_run_group_tests_name("exchange", tests, begin, NULL);
}

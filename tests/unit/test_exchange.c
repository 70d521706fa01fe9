/* SPDX-License-Identifier: Apache-2.0
 *
 * test_exchange.c: ranks find each other, and differences and faults are reported on every rank.
 */
#include "exchange_fixture.h"

#include <netinet/in.h>
#include <sys/socket.h>

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

/* Return a port that was free a moment ago. */
static int free_port(void)
{
    int port = 0;
    const int listener = wire_listen(&port, "127.0.0.1");
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

/* Share messages of about the size of a frame; some are received late. */
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

/* Deal out bytes: rank 1 gets different ones, rank 0 keeps its own. */
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

/* Pass several stages; rank 2 is later than the others. */
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
              "rank 2 greets by version 3 of the protocol of ranks but rank 0 has version 2; "
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

static void a_missing_rank_is_named(void **state)
{
    (void)state;
    run(3, 3, one_absent, finish);
    assert_non_null(strstr(result[0].text, "1 of 3 ranks did not connect within 1 s, rank 1 is"));
    assert_string_equal(result[2].text, result[0].text);
}

static void last_is_late(struct member *m, int i)
{
    m->waited = i == 2 ? &result[0] : NULL;
}

static void long_waits_are_said_on_rank_0(void **state)
{
    (void)state;
    run(THREE, THREE, last_is_late, finish);
    check_all(THREE, 0, "");
    assert_string_equal(result[0].word, "waiting for 1 of 3 ranks to connect, rank 2 is the first");
    assert_string_equal(result[1].word, "");
}

static void first_is_late(struct member *m, int i)
{
    m->waited = i == 0 ? &result[1] : NULL;
}

static void long_waits_for_rank_0_are_said(void **state)
{
    (void)state;
    run_on(-1, free_port(), 2, 2, first_is_late, finish);
    check_all(2, 0, "");
    assert_non_null(strstr(result[1].word, "rank 1 waits for rank 0 at 127.0.0.1 port "));
}

static void a_taken_port_is_named(void **state)
{
    int port = 0, again;
    const int listener = wire_listen(&port, "127.0.0.1");
    (void)state;
    again = port;
    check_refused(wire_listen(&again, "127.0.0.1"), NJ_E_IO, "set MASTER_PORT to a free one",
                  "port");
    close(listener);
}

/* Start a foreign server: it answers and waits for more. */
static pid_t foreign_server(int *port)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    *port = 0;
    const int listener = wire_listen(port, "127.0.0.1");
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

static void a_rank_0_that_is_not_there_is_said(void **state)
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

/* Send half a frame on the connection, then reset it. */
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

static void the_ends_of_all_ranks_are_waited_for(void **state)
{
    (void)state;
    run(3, 3, NULL, one_does_not_finish);
    check_all(3, -1, "some ranks did not reach this point within 1 s");
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
        cmocka_unit_test(a_missing_rank_is_named),
        cmocka_unit_test(long_waits_are_said_on_rank_0),
        cmocka_unit_test(long_waits_for_rank_0_are_said),
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(a_rank_0_that_is_not_there_is_said),
        cmocka_unit_test(stop_reaches_all),
        cmocka_unit_test(failures_reach_all),
        cmocka_unit_test(the_ends_of_all_ranks_are_waited_for),
    };
    return cmocka_run_group_tests_name("exchange", tests, begin, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * test_strangers.c: processes that connect to rank 0 without being its ranks do not disturb the run, do not join it and
 * learn nothing; and the addresses at which rank 0 can be reached.
 */
#include "exchange_fixture.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void other_run(struct member *m, int i)
{
    if (i == 1)
        m->follows = &result[3];
    if (i == 3) {
        m->run = "other";
        m->place.rank = 1;
    }
}

/* Make process 3 claim to be rank 1. It knows the run's name, but all else in its greeting is wrong. */
static void stranger(struct member *m, int i)
{
    memcpy(m->place.secret, i == 3 ? "of another run.." : "of this run.....", SECRET_BYTES);
    if (i == 1)
        m->follows = &result[3];
    if (i == 3) {
        m->place.rank = 1;
        m->place.size = 4;
        m->lr = "2e-4";
    }
}

static void one_bit(struct member *m, int i)
{
    stranger(m, i);
    if (i == 3) {
        memcpy(m->place.secret, "of this run.....", SECRET_BYTES);
        m->place.secret[SECRET_BYTES - 1] ^= 1;
    }
}

static void none_known(struct member *m, int i)
{
    stranger(m, i);
    if (i == 3)
        memset(m->place.secret, 0, SECRET_BYTES);
}

/* Check that strangers are told nothing, and that the run's ranks meet as if they had not come. */
static void strangers_are_sent_away(plant_fn plant)
{
    run(4, 3, plant, finish);
    check_all(3, 0, "");
    assert_non_null(
        strstr(result[3].text, "another run listens on this port, or this process was"));
    assert_null(strstr(result[3].text, "'run'"));
    for (int i = 0; i < EXCHANGE_PAYLOAD_BYTES; i++)
        assert_int_equal(result[3].payload[i], 0);
}

static void other_run_is_sent_away(void **state)
{
    (void)state;
    strangers_are_sent_away(other_run);
}

static void processes_with_another_secret_are_sent_away(void **state)
{
    (void)state;
    strangers_are_sent_away(stranger);
    strangers_are_sent_away(one_bit);
    strangers_are_sent_away(none_known);
}

static void refused_and_absent(struct member *m, int i)
{
    m->seconds = 2;
    memcpy(m->place.secret, i == 2 ? "of another run.." : "of this run.....", SECRET_BYTES);
}

static void those_sent_away_are_counted_where_a_rank_is_missing(void **state)
{
    (void)state;
    run(3, 3, refused_and_absent, finish);
    assert_non_null(strstr(result[0].text, "1 of 3 ranks did not connect within 2 s, rank 2 is"));
    assert_non_null(strstr(result[0].text, "; 1 that did had another --out, job or NOJIT_SECRET"));
}

/* Send as rank 2 a message that only rank 0 may send. */
static int send_data(struct exchange *x, int rank)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    char data[4 * FRAME_PART] = "";
    int fd = 3;
    if (rank != 2)
        return poll_until_failure(x);
    while (fd < 1024 && getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0)
        fd++;
    const int sent = frames_send(fd, FRAME_PAYLOAD, 2, data, sizeof data, now_ms() + 20000);
    return sent ? sent : poll_until_failure(x);
}

static void data_of_other_ranks_are_refused(void **state)
{
    (void)state;
    run(THREE, THREE, NULL, send_data);
    check_all(THREE, -1, "rank 2 sends what rank 0 alone sends");
}

/* Send the messages of strangers; the last claims to be a rank, and stops. */
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
    const int listener = wire_listen(&port, "127.0.0.1");
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

static const struct {
    const char *host;
    const char *address; /* NULL: all addresses */
} listened[] = {
    {"127.0.0.1", "127.0.0.1"},
    {"localhost", "127.0.0.1"},
    {"127.0.1.1", "127.0.1.1"},
    {"::1", "::1"},
    {"alpha", NULL},
    {"10.0.0.1", NULL},
    {"fd18::1", NULL},
    {"127.example", NULL},
};

static void ranks_of_one_host_listen_there_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof listened / sizeof *listened; i++) {
        struct sockaddr_storage at;
        socklen_t bytes = sizeof at;
        char address[INET6_ADDRSTRLEN] = "";
        int port = 0;
        const int listener = wire_listen(&port, listened[i].host);
        if (listener < 0 && strchr(listened[i].host, ':'))
            continue; /* the machine has no IPv6 */
        assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
        assert_int_equal(getnameinfo((struct sockaddr *)&at, bytes, address, sizeof address, NULL,
                                     0, NI_NUMERICHOST),
                         0);
        const char *want = listened[i].address;
        if (!want)
            want = at.ss_family == AF_INET6 ? "::" : "0.0.0.0";
        assert_string_equal(address, want);
        close(listener);
    }
}

static void sockets_that_ran_out_are_named(void **state)
{
    struct rlimit before;
    int port = 0;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int rc = wire_listen(&port, "127.0.0.1");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    check_refused(rc, NJ_E_IO, "no socket for the other ranks: Too many open files; raise ulimit",
                  "files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_run_is_sent_away),
        cmocka_unit_test(processes_with_another_secret_are_sent_away),
        cmocka_unit_test(those_sent_away_are_counted_where_a_rank_is_missing),
        cmocka_unit_test(data_of_other_ranks_are_refused),
        cmocka_unit_test(strangers_do_not_block),
        cmocka_unit_test(ranks_of_one_host_listen_there_alone),
        cmocka_unit_test(sockets_that_ran_out_are_named),
    };
    return cmocka_run_group_tests_name("strangers", tests, begin, NULL);
}

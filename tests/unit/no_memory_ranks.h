/* SPDX-License-Identifier: Apache-2.0
 *
 * no_memory_ranks.h: ranks that meet where an allocation is refused.
 */
#ifndef NOJIT_TESTS_NO_MEMORY_RANKS_H
#define NOJIT_TESTS_NO_MEMORY_RANKS_H

#include "ranks/greeting.h"
#include "ranks/wire.h"
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Made while nothing fails. */
static char *greeting;
static size_t greeting_size;

/* Rank 0, when the other one has said all that it will. */
static int meet_ranks(void)
{
    const struct place first = {.size = 2};
    const int64_t end = now_ms() + 10000;
    struct exchange *x = NULL;
    char payload = 0;
    int port = 0, resolve;
    const struct meeting m = {.place = &first,
                              .listener = wire_listen(&port, "127.0.0.1"),
                              .run = "run",
                              .seconds = 10,
                              .payload = &payload,
                              .bytes = 1};
    const int fd = wire_connect("127.0.0.1", port, end, &resolve);
    ok(wire_send(fd, greeting, greeting_size, end));
    ok(frame_send(fd, FRAME_FINISHED, 1, "", 1, end));
    int rc = exchange_open(&m, &x);
    if (rc == 0)
        rc = exchange_finish(x, 10);
    exchange_close(x);
    close(fd);
    return rc;
}

/* Says all that rank 0 will, and waits for the end of the other. */
static pid_t rank_0_that_shares(int listener)
{
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    const int64_t end = now_ms() + 10000;
    struct pollfd come = {.fd = listener, .events = POLLIN};
    char byte;
    alarm(20);
    poll(&come, 1, 10000);
    const int fd = accept(listener, NULL, NULL);
    for (int i = 0; i < 3; i++) /* of which two are shared */
        (void)frame_send(fd, FRAME_PAYLOAD, 0, "", 1, end);
    (void)frame_send(fd, FRAME_FINISHED, 0, "", 1, end);
    while (read(fd, &byte, 1) > 0)
        ;
    _exit(0);
}

/* Another rank, and what rank 0 sends it. */
static int take_shared(void)
{
    struct place second = {.rank = 1, .size = 2, .host = "127.0.0.1"};
    struct exchange *x = NULL;
    char payload = 0, shared[FRAME_PART + 1];
    const int listener = wire_listen(&second.port, second.host);
    const pid_t pid = rank_0_that_shares(listener);
    const struct meeting m = {.place = &second,
                              .listener = -1,
                              .run = "run",
                              .seconds = 1,
                              .payload = &payload,
                              .bytes = 1};
    close(listener);
    int rc = exchange_open(&m, &x);
    if (rc == 0)
        rc = exchange_share(x, shared, sizeof shared, 10);
    if (rc == 0)
        rc = exchange_finish(x, 10);
    exchange_close(x);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return rc;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * no_memory_ranks.h: ranks that meet while an allocation is refused.
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

/* Made before allocations fail. */
static char *greeting;
static size_t greeting_size;

/* Meet as rank 0, after the other one has sent all its messages. */
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

/* Fork a rank 0 that sends all its messages, then waits until the other rank has ended. */
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
    for (int i = 0; i < 3; i++) /* two of them are shared */
        (void)frame_send(fd, FRAME_PAYLOAD, 0, "", 1, end);
    (void)frame_send(fd, FRAME_FINISHED, 0, "", 1, end);
    while (read(fd, &byte, 1) > 0)
        ;
    _exit(0);
}

/* Meet as another rank, and receive from rank 0. */
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_messages.c: what rank 1 of two sends to rank 0 when it has greeted, and then nothing more.
 */
#include "fuzz.h"
#include "io/error.h"
#include "ranks/greeting.h"
#include "ranks/wire.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 10000 };

/* All that it will ever send lies in the connection before rank 0 reads. */
static int rank_1(int port, const uint8_t *data, size_t bytes)
{
    const struct place second = {.rank = 1, .size = 2};
    const struct linger at_once = {.l_onoff = 1}; /* or closed connections use up the ports */
    int resolve;
    size_t greeting_size;
    char *greeting = greeting_make(&second, "run", NULL, 0, &greeting_size);
    const int fd = wire_connect("127.0.0.1", port, now_ms() + WAIT_MS, &resolve);
    FUZZ_CHECK(greeting && fd >= 0);
    FUZZ_CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    FUZZ_CHECK(wire_send(fd, greeting, greeting_size, now_ms() + WAIT_MS) == 0);
    FUZZ_CHECK(wire_send(fd, data, bytes, now_ms() + WAIT_MS) == 0);
    FUZZ_CHECK(shutdown(fd, SHUT_WR) == 0);
    free(greeting);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct place first = {.size = 2};
    struct exchange *x;
    int port = 0;
    const int listener = wire_listen(&port, "127.0.0.1");
    FUZZ_CHECK(listener >= 0);
    const int fd = rank_1(port, data, bytes);
    char payload = 0;
    const struct meeting m = {.place = &first,
                              .listener = listener,
                              .run = "run",
                              .seconds = WAIT_MS / 1000,
                              .payload = &payload,
                              .bytes = 1};
    FUZZ_CHECK(exchange_open(&m, &x) == 0);
    const int rc = exchange_finish(x, WAIT_MS / 1000);
    /* How a rank says that it failed is its own affair. */
    fuzz_verdict(rc == 0, exchange_lost(x) >= 0 ? fail_text() : "a sentence of rank 1");
    exchange_close(x);
    close(fd);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h: sockets between ranks: fixed-size messages, and waits that end at a deadline.
 */
#ifndef NOJIT_TRAINER_WIRE_H
#define NOJIT_TRAINER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After the greeting of a rank all that travels is of this form, in every version. */
struct frame {
    uint32_t magic, kind, rank;
    char text[1024]; /* a sentence, or the payload */
};
enum { FRAME_PAYLOAD = 1, FRAME_STOP, FRAME_FAILED, FRAME_FINISHED, FRAME_HERE, FRAME_ALIVE };

struct peer {
    int fd; /* -1: none */
    size_t have;
    struct frame in;
    int here;      /* barriers that it has come to, the last of which is FRAME_FINISHED */
    int missed;    /* signs of life since the last frame */
    int64_t stage; /* how far it is, as it said last */
    bool finished;
};

int64_t now_ms(void);
/* What poll() may wait until then, in ms, and no longer than `most`. */
int wait_until(int64_t deadline, int most);

/* Sends all; -1 where the peer is gone or takes nothing until the deadline: nothing more can be sent then. */
int wire_send(int fd, const void *data, size_t bytes, int64_t deadline);
int frame_send(int fd, uint32_t kind, int rank, const void *text, size_t bytes, int64_t deadline);
/* The same of more than one frame holds: FRAME_PART bytes in each, the last filled up. */
enum { FRAME_PART = 1023 };
int frames_send(int fd, uint32_t kind, int rank, const void *data, size_t bytes, int64_t deadline);
/* Reads what is there: 1 with a whole frame in p->in, 0 if there is none yet, -1 with errno if p is gone, or sends what
 * is no frame (EPROTO). */
int frame_receive(struct peer *p);
void peer_close(struct peer *p);

/* Does not block, and notices hosts that vanish. */
void wire_prepare(int fd);
/* Listens where `host` is reached: where that is localhost, ::1 or an address in 127.0.0.0/8, on that alone, else on
 * every address. *port 0: the system chooses one. Returns the socket, or NJ_E_IO: the port is taken, or no socket is
 * left. */
int wire_listen(int *port, const char *host);
/* One try of every address of a host, until the deadline: the socket, or -1 with errno or *resolve (getaddrinfo). */
int wire_connect(const char *host, int port, int64_t deadline, int *resolve);

#endif

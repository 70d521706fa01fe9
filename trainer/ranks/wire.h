/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h: sockets between ranks: fixed-size messages, and waits that end at a deadline. /
 */
#ifndef NOJIT_TRAINER_WIRE_H
#define NOJIT_TRAINER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Message format of all traffic after the greeting of a rank, in every version. */
struct frame {
    uint32_t magic, kind, rank;
    char text[1024]; /* a sentence, or the payload */
};
enum { FRAME_PAYLOAD = 1, FRAME_STOP, FRAME_FAILED, FRAME_FINISHED, FRAME_HERE, FRAME_ALIVE };

struct peer {
    int fd; /* socket; -1: none */
    size_t have;
    struct frame in;
    int here;      /* number of barriers that it has reached; FRAME_FINISHED is the last */
    int missed;    /* number of this process's beats since the last frame */
    int64_t stage; /* how far the peer is, by its last report */
    bool finished;
};

int64_t now_ms(void);
/* Return how long poll() may wait for the deadline, in ms, at most `most`. */
int wait_until(int64_t deadline, int most);

/* Send all bytes; -1 if the peer is gone or accepts nothing until the deadline: nothing more can
 * be sent then. */
int wire_send(int fd, const void *data, size_t bytes, int64_t deadline);
int frame_send(int fd, uint32_t kind, int rank, const void *text, size_t bytes, int64_t deadline);
/* Send data of more than one frame: FRAME_PART bytes in each, the last padded. */
enum { FRAME_PART = 1023 };
int frames_send(int fd, uint32_t kind, int rank, const void *data, size_t bytes, int64_t deadline);
/* Read available bytes: return 1 with a whole frame in p->in, 0 if there is none yet, -1 with
 * errno if p is gone or has sent something that is not a frame (EPROTO). */
int frame_receive(struct peer *p);
void peer_close(struct peer *p);

/* Make the socket non-blocking and detect hosts that vanish. */
void wire_prepare(int fd);
/* Listen where `host` is reached: if that is localhost, ::1 or an address in 127.0.0.0/8, on
 * that alone, else on every address. *port 0: the system chooses one. Return the socket, or
 * NJ_E_IO: the port is taken, or no socket is left. */
int wire_listen(int *port, const char *host);
/* Try every address of a host once, until the deadline: return the socket, or -1 with errno or
 * *resolve (getaddrinfo). */
int wire_connect(const char *host, int port, int64_t deadline, int *resolve);

#endif

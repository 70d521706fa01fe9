/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.h: prompts continued.
 */
#ifndef NOJIT_TRAINER_DECODE_H
#define NOJIT_TRAINER_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/sampling.h"

struct engine;

/* A prompt to be continued. Its random numbers follow from the seed, `number` and the position of each token, not from
 * what is continued beside it. */
struct decode_prompt {
    const int32_t *ids; /* until the last of it was said */
    int count,
        most; /* tokens of the prompt, and that may follow; together decode_positions at most */
    int32_t number;
    void *user;
};
enum decode_end {
    DECODE_MORE,    /* it is not the end */
    DECODE_STOPPED, /* the last token is one of `stop` */
    DECODE_LENGTH   /* `most` tokens were said */
};
struct decode_io {
    /* The next prompt: 1; there is none: 0; or a negative code, with which engine_decode() fails */
    int (*next)(void *user, struct decode_prompt *out);
    /* Tokens that follow a prompt, some at a time, in order. 0; 1: it needs no more; or a negative code, with which
     * engine_decode() fails */
    int (*said)(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                enum decode_end end);
    void *user;
    struct decode_sampling how;
    const int32_t *stop; /* tokens that end a text, at most 8 */
    int stops;
};
/* Whether a token is one that ends a text. */
bool decode_stops(const struct decode_io *io, int32_t id);
/* Continues prompts until there are none, decode_rows at a time: where one ends the next one takes its place. */
int engine_decode(struct engine *e, const struct decode_io *io);

struct decode_graph;
void decode_graphs_free(struct decode_graph *g);

#endif

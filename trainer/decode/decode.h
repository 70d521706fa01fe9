/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.h: continues prompts.
 */
#ifndef NOJIT_TRAINER_DECODE_H
#define NOJIT_TRAINER_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/sampling.h"

struct engine;

/* A prompt to be continued. Its random numbers follow from the seed, `number` and the position of each token, not
 * from the prompts continued beside it. */
struct decode_prompt {
    const int32_t *ids; /* tokens of the prompt, valid until the end of its text was generated */
    int count,
        most; /* number of tokens of the prompt, and of tokens that may follow; together at most decode_positions */
    int32_t number;
    void *user;
};
enum decode_end {
    DECODE_MORE,    /* the text goes on */
    DECODE_STOPPED, /* the last token is one of `stop` */
    DECODE_LENGTH   /* `most` tokens have followed */
};
struct decode_io {
    /* Get the next prompt. Return 1, 0 if there is none, or a negative code, with which engine_decode() fails. */
    int (*next)(void *user, struct decode_prompt *out);
    /* Take tokens that follow a prompt, some at a time, in order. Return 0, 1 to end the text, or a negative code,
     * with which engine_decode() fails. */
    int (*generated)(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                     enum decode_end end);
    void *user;
    struct decode_sampling how;
    const int32_t *stop; /* tokens that end a text, at most 8 */
    int stops;
};
/* Return whether a token ends a text. */
bool decode_stops(const struct decode_io *io, int32_t id);
/* Continue prompts until there are none, decode_rows at a time: when a text ends, the next prompt takes its
 * place. */
int engine_decode(struct engine *e, const struct decode_io *io);

struct decode_graph;
void decode_graphs_free(struct decode_graph *g);

#endif

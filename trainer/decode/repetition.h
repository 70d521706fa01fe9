/* SPDX-License-Identifier: Apache-2.0
 *
 * repetition.h: the repetition penalty of transformers: the logit of each token that a text has had, its prompt
 * included, is divided by a factor where it is above 0 and multiplied by it where it is below. Logits go through the
 * host for it, between the pass and the draw of each step.
 */
#ifndef NOJIT_TRAINER_REPETITION_H
#define NOJIT_TRAINER_REPETITION_H

#include "net/decoder.h"

struct engine;

/* Tokens that the text of one slot has had. */
struct tokens_had {
    unsigned char *bit; /* [vocab] bits */
    int32_t *id;        /* tokens, each once */
    int count, capacity;
};

struct repetition {
    float factor;
    const struct decoder *d;
    char *logits;           /* [rows, ld] logits, as on the device */
    struct tokens_had *had; /* [rows] tokens by slot; NULL: there is no penalty */
};

/* Make room, if the factor is neither 0 nor 1. Call repetition_close() in each case. */
int repetition_open(const struct decoder *d, float factor, struct repetition *out);
void repetition_close(struct repetition *r);
static inline bool repetition_is_on(const struct repetition *r)
{
    return r->had != NULL;
}
/* Begin the text of a slot with a prompt, or add tokens to it. */
int repetition_begin(struct repetition *r, int slot, const int32_t *ids, int count);
int repetition_add(struct repetition *r, int slot, const int32_t *ids, int count);
/* Penalize the logits of a step's rows, whose slots are given (negative: an idle row), and wait for the device. */
int repetition_apply(struct repetition *r, struct engine *e, const int32_t *slot, int rows);

#endif

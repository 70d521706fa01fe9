/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder.h: a net that generates text: many sequences at a time, each with a slot of the KV cache, and one token of
 * each per step. The input and output of a step lie on the device, so that steps follow each other without the host.
 */
#ifndef NOJIT_TRAINER_DECODER_H
#define NOJIT_TRAINER_DECODER_H

#include "net/acts.h"
#include "net/cache.h"
#include "net/sampling.h"

/* Largest number of steps before the host looks at the results, and largest number of tokens that end a
 * sequence. */
enum { DECODE_WINDOW = 8, DECODE_STOPS = 8 };

/* Arrays with one element per sequence, [rows] each, which lie together on the device and in pinned memory. */
struct decode_rows {
    int32_t *id, *pos; /* token that the next step feeds, and its position */
    int32_t *slot;     /* slot of the sequence; negative: none, or it has ended */
    int32_t *number;   /* number that its random numbers follow from */
    int32_t *left;     /* number of tokens that may follow */
    int32_t *step;     /* [1] number of the step in the window */
};

struct decoder {
    const struct net *net;
    int rows;    /* number of sequences decoded at a time */
    int prefill; /* largest number of rows of a pass over prompts */
    int vocab, ld;
    struct cache cache;
    struct acts acts;
    struct rows prompts;       /* ids, pos, slot, doc_start of a pass over prompts */
    struct decode_rows now;    /* arrays of the current step */
    struct fp8_matrix x;       /* FP8: input of the LM head */
    char *logits;              /* [rows, ld] */
    float *cut, *score;        /* [rows]; [rows, parts] */
    int32_t *best, *generated; /* [rows, parts]; [DECODE_WINDOW, rows] */
    int32_t *stop;             /* [DECODE_STOPS], then -1 */
    size_t prompts_bytes, now_bytes, generated_bytes;
};

/* Size of a decoder: number of sequences at a time, positions of each, and whether the cache holds a byte per
 * element. */
struct decoder_size {
    int rows, positions;
    bool bytes_cached;
};
/* Carve the decoder's device memory. vocab, ld: columns and leading dimension of the logits. */
void decoder_carve(const struct net *n, const struct decoder_size *size, int vocab, int ld,
                   struct carve *m, struct decoder *out);
/* Carve the pinned memory that the host writes and reads: rows of a pass over prompts, arrays of a step, tokens
 * drawn. */
void decoder_carve_host(const struct decoder *d, struct carve *m, struct rows *prompts,
                        struct decode_rows *now, int32_t **generated);

/* Return the number of rows, at least `count`, of a pass over prompts or of a step: one of the few whose GEMMs are
 * prepared. */
int decoder_prompt_rows(const struct decoder *d, int count);
int decoder_step_rows(const struct decoder *d, int count);
/* Return the number of chunks that the attention of a step cuts the keys of a row into, from the number of keys of
 * all rows and of the longest row; 1: they are not cut. */
int decoder_chunks(const struct decoder *d, int64_t keys, int longest);

/* Compute keys and values of the `rows` rows of d->prompts, into the cache. */
void decoder_prefill(struct work *r, struct decoder *d, int rows);
/* Run one half of a step: compute the logits of the first `rows` sequences, or draw a token for each. */
void decoder_logits(struct work *r, struct decoder *d, int rows, int chunks);
void decoder_sample(struct work *r, struct decoder *d, const struct decode_sampling *how, int rows);
/* Run a whole step for the first `rows` sequences. */
void decoder_step(struct work *r, struct decoder *d, const struct decode_sampling *how, int rows,
                  int chunks);
/* Prepare the GEMMs of passes over prompts and of steps. */
void decoder_prepare(struct work *r, struct decoder *d);

#endif

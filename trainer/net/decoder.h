/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder.h: a net that writes: many sequences at a time, each with a slot of a cache of keys and values, a token of
 * each per step. What a step reads and leaves lies on the device, so that steps follow each other without the host.
 */
#ifndef NOJIT_TRAINER_DECODER_H
#define NOJIT_TRAINER_DECODER_H

#include "net/acts.h"
#include "net/cache.h"
#include "net/sampling.h"

/* Steps between two looks of the host at most, and tokens that end a sequence. */
enum { DECODE_WINDOW = 8, DECODE_STOPS = 8 };

/* Of each sequence, [rows] one after the other on the device and in pinned memory. */
struct decode_rows {
    int32_t *id, *pos; /* of the token that the next step feeds */
    int32_t *slot;     /* negative: none, or ended */
    int32_t *number;   /* of its random numbers */
    int32_t *left;     /* tokens that may follow */
    int32_t *step;     /* [1] of the window */
};

struct decoder {
    const struct net *net;
    int rows;    /* sequences at a time */
    int prefill; /* rows of a pass over prompts at most */
    int vocab, ld;
    struct cache cache;
    struct acts acts;
    struct rows prompts;    /* ids, pos, slot, doc_start of a pass over prompts */
    struct decode_rows now; /* of a step */
    struct f8_matrix x;     /* f8: what the head reads */
    char *logits;           /* [rows, ld] */
    float *cut, *score;     /* [rows]; [rows, parts] */
    int32_t *best, *said;   /* [rows, parts]; [DECODE_WINDOW, rows] */
    int32_t *stop;          /* [DECODE_STOPS], then -1 */
    size_t prompts_bytes, now_bytes, said_bytes;
};

/* Sequences that are written at a time, positions of each, and bytes_cached: the cache holds a byte an element. */
struct decoder_size {
    int rows, positions;
    bool bytes_cached;
};
/* Memory of the device; vocab, ld: of logits. */
void decoder_carve(const struct net *n, const struct decoder_size *size, int vocab, int ld,
                   struct carve *m, struct decoder *out);
/* What of it the host writes and reads, in pinned memory: rows of a pass over prompts; of a step; what was said. */
void decoder_carve_host(const struct decoder *d, struct carve *m, struct rows *prompts,
                        struct decode_rows *now, int32_t **said);

/* Rows that a pass over prompts, or a step, of at least `count` has: one of a few, whose GEMMs are prepared. */
int decoder_prompt_rows(const struct decoder *d, int count);
int decoder_step_rows(const struct decoder *d, int count);
/* Chunks that the attention of a step cuts the keys of its rows into: so many in all, and of the longest row; 1: they
 * are not cut. */
int decoder_chunks(const struct decoder *d, int64_t keys, int longest);

/* Keys and values of d->prompts, `rows` of them, into the cache. */
void decoder_prefill(struct work *r, struct decoder *d, int rows);
/* The two halves of a step: the logits of the first `rows` sequences, and a token of each. */
void decoder_logits(struct work *r, struct decoder *d, int rows, int chunks);
void decoder_sample(struct work *r, struct decoder *d, const struct decode_sampling *how, int rows);
/* A token of each of the first `rows` sequences. */
void decoder_step(struct work *r, struct decoder *d, const struct decode_sampling *how, int rows,
                  int chunks);
/* Prepares the GEMMs of all that. */
void decoder_prepare(struct work *r, struct decoder *d);

#endif

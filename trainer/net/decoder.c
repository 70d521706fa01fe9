/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder.c: see decoder.h. All but the last token of a prompt goes through the net as in training, many prompts
 * packed into one pass, which leaves keys and values in the cache; the first step feeds the last token.
 */
#include "net/decoder.h"

#include "base/checked.h"
#include "base/decode.h"
#include "base/integers.h"
#include "net/few_rows.h"
#include "net/forward.h"
#include "net/fp8.h"
#include "net/logits.h"
#include "nojit_ops.h"

/* Largest number of rows of a pass over prompts, for which GEMMs are at full speed and no larger than those of a
 * micro-batch; number of rows of the smallest pass that is worth GEMMs of its own. */
enum { PREFILL_ROWS = 8192, PREFILL_LEAST = 64 };
/* Number of attention blocks that fill a GPU. */
enum { ATTENTION_BLOCKS = 256 };
/* Ratios of successive numbers of rows that have GEMMs of their own. */
enum { PROMPTS_BY = 4, STEPS_BY = 2 };
/* Number of blocks that share the logits of a step, at least, so that a GPU is full; largest number that share a
 * row. */
enum { SAMPLE_BLOCKS = 256, SAMPLE_PARTS = 64 };

/* Return the number of rows of a pass over prompts. */
static int prefill_rows(const struct decoder_size *size)
{
    const int64_t all = (int64_t)size->rows * size->positions;
    int prefill = all < PREFILL_ROWS ? (int)all : PREFILL_ROWS;
    if (prefill < size->positions)
        prefill = size->positions;
    return int_round_up(prefill, PREFILL_LEAST);
}

/* Return the number of blocks that share a row. */
static int parts_of(int rows)
{
    const int parts = (SAMPLE_BLOCKS + rows - 1) / rows;
    return int_min(parts, SAMPLE_PARTS);
}

static void rows_of_prompts(int count, struct carve *m, struct rows *out)
{
    rows_carve(count, 0, USE_FORWARD | USE_DECODER, m, out);
}

static void rows_of_step(int count, struct carve *m, struct decode_rows *out)
{
    const size_t bytes = size_mul((size_t)count, sizeof(int32_t));
    out->id = carve_take(m, bytes);
    out->pos = carve_take(m, bytes);
    out->slot = carve_take(m, bytes);
    out->number = carve_take(m, bytes);
    out->left = carve_take(m, bytes);
    out->step = carve_take(m, sizeof(int32_t));
}

static size_t generated_bytes(int rows)
{
    return size_product(DECODE_WINDOW, (size_t)rows, sizeof(int32_t));
}

/* Return an upper bound of the number of blocks that share the logits of all rows of a step. */
static size_t shares(int rows)
{
    return size_add((size_t)rows, SAMPLE_BLOCKS);
}

/* Return the number of a row's partial sums over a chunk: for each head its output, the largest score and the sum of
 * exponentials. */
static int64_t part_size(const struct block *b)
{
    return (int64_t)b->heads * (block_padded_dim(b) + 2);
}

/* Return the fewest key heads of a layer with attention. */
static int fewest_key_heads(const struct net *n)
{
    int fewest = 0;
    for (int l = 0; l < n->c.layers; l++) {
        const struct block *b = arch_block(&n->c.arch, l, BLOCK_ATTENTION);
        if (b && (fewest == 0 || b->kv_heads < fewest))
            fewest = b->kv_heads;
    }
    return fewest;
}

static int chunks_of(const struct decoder *d, int positions)
{
    const int most = (d->cache.positions + DECODE_CHUNK - 1) / DECODE_CHUNK;
    int chunks = 1;
    while (chunks * DECODE_CHUNK < positions)
        chunks *= 2;
    return int_min(chunks, most);
}

void decoder_carve(const struct net *n, const struct decoder_size *s, int vocab, int ld,
                   struct carve *m, struct decoder *out)
{
    const int prefill = prefill_rows(s), most = prefill > s->rows ? prefill : s->rows;
    const size_t each = size_mul((size_t)s->rows, sizeof(float));
    struct carve prompts = {0}, now = {0};
    *out =
        (struct decoder){.net = n, .rows = s->rows, .prefill = prefill, .vocab = vocab, .ld = ld};
    cache_carve(n, s->rows, s->positions, s->bytes_cached, m, &out->cache);
    acts_carve(n, 1, most, ACTS_INFER, m, &out->acts);
    out->acts.cache = &out->cache;
    const int chunks = chunks_of(out, s->positions);
    const size_t part =
        size_mul((size_t)arch_most(&n->c.arch, n->c.layers, part_size), sizeof(float));
    out->acts.chunk_sums = carve_take(m, size_product((size_t)chunks, (size_t)s->rows, part));
    rows_of_prompts(prefill, &prompts, &out->prompts);
    rows_of_step(s->rows, &now, &out->now);
    out->prompts_bytes = prompts.used;
    out->now_bytes = now.used;
    carve_together(m, prompts.used);
    rows_of_prompts(prefill, m, &out->prompts);
    carve_together(m, now.used);
    rows_of_step(s->rows, m, &out->now);
    if (n->head->format->e4m3)
        out->x = fp8_rows(n->f8_scales, s->rows, n->c.hidden_size, m);
    out->logits = carve_take(m, size_product((size_t)s->rows, (size_t)ld, dtype_bytes(n->T)));
    out->cut = carve_take(m, each);
    out->score = carve_take(m, size_mul(shares(s->rows), sizeof(float)));
    out->best = carve_take(m, size_mul(shares(s->rows), sizeof(int32_t)));
    out->generated_bytes = generated_bytes(s->rows);
    out->generated = carve_take(m, out->generated_bytes);
    out->stop = carve_take(m, size_mul(DECODE_STOPS, sizeof(int32_t)));
}

void decoder_carve_host(const struct decoder *d, struct carve *m, struct rows *prompts,
                        struct decode_rows *now, int32_t **generated)
{
    rows_of_prompts(d->prefill, m, prompts);
    rows_of_step(d->rows, m, now);
    *generated = carve_take(m, generated_bytes(d->rows));
}

/* Return the smallest of `most`, most / by, most / by^2, ... that is at least `count` and `few`. */
static int bucket(int most, int by, int few, int count)
{
    int rows = most;
    while (rows / by >= count && rows / by >= few)
        rows /= by;
    return rows;
}

int decoder_prompt_rows(const struct decoder *d, int count)
{
    return bucket(d->prefill, PROMPTS_BY, PREFILL_LEAST, count);
}

int decoder_step_rows(const struct decoder *d, int count)
{
    return bucket(d->rows, STEPS_BY, 1, count);
}

/* Assume a block per row and key head: the longest row ends last, and `blocks` are at work on average until then. */
int decoder_chunks(const struct decoder *d, int64_t keys, int longest)
{
    const int64_t blocks = keys * fewest_key_heads(d->net) / longest;
    return blocks >= ATTENTION_BLOCKS ? 1 : chunks_of(d, longest);
}

void decoder_prefill(struct work *r, struct decoder *d, int rows)
{
    d->acts.mode = ACTS_INFER;
    d->acts.B = 1;
    d->acts.S = rows;
    net_forward(r, d->net, &d->acts, &d->prompts);
}

/* Return the temperature, or 0 where it is so small that logits divided by it are infinite in float32: the
 * likeliest token is then the only one that can be drawn. */
static float finite_temperature(const struct decode_sampling *how)
{
    const float smallest = 1e-30f;
    return how->temperature < smallest ? 0 : how->temperature;
}

/* Return whether some tokens cannot be drawn at all. */
static bool cuts(const struct decode_sampling *how)
{
    return finite_temperature(how) > 0 &&
           (how->top_k > 0 || (how->top_p > 0 && how->top_p < 1) || how->min_p > 0);
}

void decoder_sample(struct work *r, struct decoder *d, const struct decode_sampling *how, int rows)
{
    const enum nj_dtype T = d->net->T;
    const struct decode_rows *now = &d->now;
    const int parts = parts_of(rows);
    const float top_p = how->top_p > 0 ? how->top_p : 1;
    if (cuts(how))
        OP(r, nj_sample_cut(r->s, T,
                            &(struct nj_sample_cut){.cut = d->cut,
                                                    .x = d->logits,
                                                    .slot = now->slot,
                                                    .R = rows,
                                                    .V = d->vocab,
                                                    .ld = d->ld,
                                                    .tau = finite_temperature(how),
                                                    .top_k = how->top_k,
                                                    .top_p = top_p,
                                                    .min_p = how->min_p}));
    OP(r, nj_sample(r->s, T,
                    &(struct nj_sample){.score = d->score,
                                        .best = d->best,
                                        .x = d->logits,
                                        .cut = cuts(how) ? d->cut : NULL,
                                        .slot = now->slot,
                                        .number = now->number,
                                        .pos = now->pos,
                                        .R = rows,
                                        .V = d->vocab,
                                        .ld = d->ld,
                                        .PARTS = parts,
                                        .tau = finite_temperature(how),
                                        .seed_low = (int32_t)how->seed,
                                        .seed_high = (int32_t)(how->seed >> 32)}));
    OP(r, nj_sample_next(r->s, NJ_F32,
                         &(struct nj_sample_next){.out = d->generated,
                                                  .ids = now->id,
                                                  .pos = now->pos,
                                                  .left = now->left,
                                                  .slot = now->slot,
                                                  .counter = now->step,
                                                  .score = d->score,
                                                  .best = d->best,
                                                  .stop = d->stop,
                                                  .R = rows,
                                                  .PARTS = parts,
                                                  .W = DECODE_WINDOW}));
}

void decoder_logits(struct work *r, struct decoder *d, int rows, int chunks)
{
    const struct rows in = {.ids = d->now.id, .pos = d->now.pos, .slot = d->now.slot};
    d->acts.mode = ACTS_DECODE;
    d->acts.B = rows;
    d->acts.S = 1;
    d->acts.chunks = chunks;
    if (few_rows_fit(r, d->net, rows)) {
        few_rows_step(r, d->net, &d->acts, &in, d->vocab, d->ld, d->logits);
    } else {
        net_forward(r, d->net, &d->acts, &in);
        net_logits(r, d->net, &d->x, d->acts.y, rows, d->vocab, d->ld, d->logits);
    }
}

void decoder_step(struct work *r, struct decoder *d, const struct decode_sampling *how, int rows,
                  int chunks)
{
    decoder_logits(r, d, rows, chunks);
    decoder_sample(r, d, how, rows);
}

void decoder_prepare(struct work *r, struct decoder *d)
{
    const struct decode_sampling any = {0};

    for (int rows = d->prefill; rows >= PREFILL_LEAST; rows /= PROMPTS_BY)
        decoder_prefill(r, d, rows);
    for (int rows = d->rows; rows > 0; rows /= STEPS_BY)
        decoder_step(r, d, &any, rows, 1);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder_fixture.h: the arrays of a decoder with three rows on a device, and the launches that store their keys and
 * decode them.
 */
#ifndef NOJIT_DECODER_FIXTURE_H
#define NOJIT_DECODER_FIXTURE_H

#include "device_fixture.h"
#include "nojit_ops.h"

enum {
    ROWS = 3,
    HEADS = 14,
    KEY_HEADS = 2,
    SIZE = 64,
    POSITIONS = 320,
    LONGEST = 300,
    ROW = (HEADS + 2 * KEY_HEADS) * SIZE,
    CACHE = ROWS * KEY_HEADS * POSITIONS * SIZE
};
static const float AMPLITUDE = 0.75f; /* factor of rotated pairs */
static const int32_t row_slots[ROWS] = {2, 0, 1}, row_lengths[ROWS] = {201, LONGEST, 256};

struct decoder {
    struct device *d;
    enum nj_dtype T;
    bool bytes;
    int size, heads,
        key_heads; /* ROW and CACHE keep their sizes with heads twice as wide and half as many */
    void *qkv, *k, *v, *o, *slot, *pos;
    float *scales, *part, *floats;
    const void *bias;      /* bias of the decoder; NULL: rows are rotated before */
    const float *inv_freq; /* NULL: rows are rotated before */
    const void *sink;      /* NULL: heads have none */
    int32_t window;        /* 0: none */
    int32_t places;        /* places of a slot, at most POSITIONS */
};

static inline void *device_bytes(struct device *d, size_t bytes)
{
    void *p;
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, bytes, &p), 0);
    return p;
}

static inline void transfer(const struct decoder *c, void *to, const void *from, size_t bytes)
{
    assert_int_equal(nj_copy(c->d->s, to, from, bytes), 0);
    assert_int_equal(nj_stream_sync(c->d->s), 0);
}

static inline struct decoder decoder_open(struct device *d, int size)
{
    const size_t cache = CACHE * sizeof(float);
    return (struct decoder){.d = d,
                            .size = size,
                            .heads = HEADS * SIZE / size,
                            .key_heads = KEY_HEADS * SIZE / size,
                            .places = POSITIONS,
                            .qkv = device_bytes(d, LONGEST * ROW * sizeof(float)),
                            .k = device_bytes(d, cache),
                            .v = device_bytes(d, cache),
                            .o = device_bytes(d, ROWS * HEADS * SIZE * sizeof(float)),
                            .slot = device_bytes(d, LONGEST * sizeof(int32_t)),
                            .pos = device_bytes(d, LONGEST * sizeof(int32_t)),
                            .scales = device_bytes(d, CACHE / SIZE * 2 * sizeof(float)),
                            .part = device_bytes(d, 5 * ROWS * HEADS * (SIZE + 2) * sizeof(float)),
                            .floats = device_bytes(d, LONGEST * ROW * sizeof(float))};
}

static inline void decoder_close(const struct decoder *c)
{
    void *const buffers[] = {c->qkv, c->k,      c->v,    c->o,     c->slot,
                             c->pos, c->scales, c->part, c->floats};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        nj_free(c->d->ctx, NJ_MEM_DEVICE, buffers[i]);
}

/* Fill the cache and the output with NaN. */
static inline void decoder_forget(const struct decoder *c)
{
    static unsigned char nans[CACHE * sizeof(float)];
    memset(nans, 0xff, sizeof nans);
    transfer(c, c->k, nans, sizeof nans);
    transfer(c, c->v, nans, sizeof nans);
    transfer(c, c->scales, nans, CACHE / SIZE * 2 * sizeof(float));
    transfer(c, c->o, nans, ROWS * HEADS * SIZE * sizeof(float));
}

/* Copy values as T. */
static inline void put(const struct decoder *c, void *to, const float *values, int count)
{
    transfer(c, c->T == NJ_F32 ? to : c->floats, values, (size_t)count * sizeof *values);
    if (c->T == NJ_LP)
        assert_int_equal(
            nj_cast_to_lp(c->d->s, c->T,
                          &(struct nj_cast_to_lp){.dst = to, .src = c->floats, .n = count}),
            0);
}

/* Copy rows, starting with the first. */
static inline void put_rows(const struct decoder *c, const float *rows, int count)
{
    put(c, c->qkv, rows, count * ROW);
}

static inline void decode(const struct decoder *c, int32_t rows, int32_t chunks)
{
    const int rc = c->bytes ? nj_attn_decode_q8(c->d->s, c->T, c->size,
                                                &(struct nj_attn_decode_q8){.o = c->o,
                                                                            .part = c->part,
                                                                            .k = c->k,
                                                                            .v = c->v,
                                                                            .kv_scale = c->scales,
                                                                            .qkv = c->qkv,
                                                                            .bias = c->bias,
                                                                            .inv_freq = c->inv_freq,
                                                                            .sink = c->sink,
                                                                            .slot = c->slot,
                                                                            .pos = c->pos,
                                                                            .R = rows,
                                                                            .H = c->heads,
                                                                            .K = c->key_heads,
                                                                            .P = c->places,
                                                                            .G = ROWS,
                                                                            .C = chunks,
                                                                            .window = c->window,
                                                                            .scale = 0.125f,
                                                                            .amplitude = AMPLITUDE})
                            : nj_attn_decode(c->d->s, c->T, c->size,
                                             &(struct nj_attn_decode){.o = c->o,
                                                                      .part = c->part,
                                                                      .k = c->k,
                                                                      .v = c->v,
                                                                      .qkv = c->qkv,
                                                                      .bias = c->bias,
                                                                      .inv_freq = c->inv_freq,
                                                                      .sink = c->sink,
                                                                      .slot = c->slot,
                                                                      .pos = c->pos,
                                                                      .R = rows,
                                                                      .H = c->heads,
                                                                      .K = c->key_heads,
                                                                      .P = c->places,
                                                                      .G = ROWS,
                                                                      .C = chunks,
                                                                      .window = c->window,
                                                                      .scale = 0.125f,
                                                                      .amplitude = AMPLITUDE});
    assert_int_equal(rc, 0);
    if (chunks > 1)
        assert_int_equal(nj_attn_decode_merge(c->d->s, c->T, c->size,
                                              &(struct nj_attn_decode_merge){.o = c->o,
                                                                             .part = c->part,
                                                                             .sink = c->sink,
                                                                             .slot = c->slot,
                                                                             .pos = c->pos,
                                                                             .R = rows,
                                                                             .H = c->heads,
                                                                             .C = chunks,
                                                                             .window = c->window}),
                         0);
}

/* Store all keys of a row except the newest; the rest of the cache stays NaN. */
static inline void store(const struct decoder *c, int r, const float *rows)
{
    int32_t slot[LONGEST], pos[LONGEST];
    const int n = row_lengths[r] - 1;
    for (int i = 0; i < n; i++)
        slot[i] = row_slots[r], pos[i] = i;
    transfer(c, c->slot, slot, sizeof slot);
    transfer(c, c->pos, pos, sizeof pos);
    put_rows(c, rows, n);
    const int rc = c->bytes ? nj_kv_store_q8(c->d->s, c->T, c->size,
                                             &(struct nj_kv_store_q8){.k = c->k,
                                                                      .v = c->v,
                                                                      .kv_scale = c->scales,
                                                                      .qkv = c->qkv,
                                                                      .slot = c->slot,
                                                                      .pos = c->pos,
                                                                      .N = n,
                                                                      .H = c->heads,
                                                                      .K = c->key_heads,
                                                                      .P = c->places,
                                                                      .G = ROWS})
                            : nj_kv_store(c->d->s, c->T, c->size,
                                          &(struct nj_kv_store){.k = c->k,
                                                                .v = c->v,
                                                                .qkv = c->qkv,
                                                                .slot = c->slot,
                                                                .pos = c->pos,
                                                                .N = n,
                                                                .H = c->heads,
                                                                .K = c->key_heads,
                                                                .P = c->places,
                                                                .G = ROWS});
    assert_int_equal(rc, 0);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_gemm_check.c: whether an algorithm of cuBLASLt multiplies rightly. Operands are filled with -1, 0 and 1 so that
 * every element of the product is known without multiplying, whatever the shape, and every right algorithm gives the
 * same bits: a result is compared with what it must be, not with that of another algorithm, and the bound is zero.
 *
 * An operand is a periodic sequence, laid over the whole array, gaps between rows included: the quadratic characters of
 * a prime (0 for 0, 1 for squares, -1 for the others), which add up to zero over a period. Rows of op(A) and of op(B)
 * are then the same sequence from different places on, so an element depends on two places alone; with two primes
 * there are some 14,000 of them, and the sum of K products is the difference of two of the sums over all pairs of
 * places in order, which come back to zero at the end. As primes divide no size of a tile, a tile that is missing,
 * stale, moved or summed over other columns differs in nearly all elements.
 *
 * Exact sums: those of consecutive products are at most 208 whatever K is, and any sum of some of them K, so float32
 * holds them in any order, split or not; tensor cores that keep 14 bits of sums of FP8 operands hold those of
 * consecutive products, which is how they add; and 16 bits hold the whole sum. Alpha and scales are 1, and the result
 * begins as NaN, or as ones where it is added to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cuda_gemm.h"

/* Number of periods of a pattern on the host: with this many, copies are long and aligned. LONGEST: longest period. */
enum { REPEATS = 256, LONGEST = 127 };
/* Parts of the pinned buffer: blocks that arrays are filled with; results are read behind them. */
enum { BLOCK_A, BLOCK_B, BLOCK_ONES, BLOCKS };
enum {
    BLOCK_BYTES = REPEATS * LONGEST * 4,
    ONES_BYTES = 4096,
    SAMPLE_BYTES = 4 << 20,
    PINNED_BYTES = BLOCKS * BLOCK_BYTES + SAMPLE_BYTES,
};
/* Bounds of what is read of a result: bytes of a piece, which is a row where they allow it, and of all pieces. */
enum { PIECE_LEAST = 512, PIECE_MOST = 4096, LEAST_BYTES = 1 << 20 };
static const struct {
    size_t part, most;
} depths[] = {[NJ_LT_QUICK] = {256, 16 << 20}, [NJ_LT_THOROUGH] = {16, 64 << 20}};

/* ---- numbers ---- */

struct format {
    int type, exponent, mantissa;
};

static const struct format *format_of(int type)
{
    static const struct format formats[] = {
        {NJ_CUDA_R_32F, 8, 23},    {NJ_CUDA_R_16F, 5, 10},    {NJ_CUDA_R_16BF, 8, 7},
        {NJ_CUDA_R_8F_E4M3, 4, 3}, {NJ_CUDA_R_8F_E5M2, 5, 2},
    };
    const struct format *f = formats;

    while (f->type != type)
        f++;
    return f;
}

static size_t format_bytes(const struct format *f)
{
    return (size_t)(1 + f->exponent + f->mantissa) / 8;
}

/* Return the bits of a small integer, which every result type holds exactly. */
static uint32_t encode(const struct format *f, int value)
{
    const int bias = (1 << (f->exponent - 1)) - 1, dropped = 23 - f->mantissa;
    const float size = (float)abs(value);
    uint32_t bits;

    if (value == 0)
        return 0;
    memcpy(&bits, &size, sizeof bits);
    bits -= (uint32_t)(127 - bias) << 23;
    return bits >> dropped | (uint32_t)(value < 0) << (f->exponent + f->mantissa);
}

static uint32_t read_bits(const unsigned char *at, size_t bytes)
{
    uint16_t half;
    uint32_t bits;

    if (bytes == sizeof half)
        return memcpy(&half, at, sizeof half), half;
    memcpy(&bits, at, sizeof bits);
    return bits;
}

static void write_bits(void *at, uint32_t bits, size_t bytes)
{
    const uint16_t half = (uint16_t)bits;
    const uint8_t byte = (uint8_t)bits;

    memcpy(at, bytes == 4 ? (const void *)&bits : bytes == 2 ? (const void *)&half : &byte, bytes);
}

/* ---- patterns ---- */

struct pattern {
    int period;
    int row,
        along; /* steps from one row of op(X) to the next, and from one of its K columns to the next */
    signed char value[LONGEST];
};

/* Return a period. There are five, so that for each operand there is one that does not divide its ld; otherwise all
 * rows would be alike. */
static int period_of(int64_t ld, int other)
{
    static const int primes[] = {LONGEST, 113, 109, 107, 103};
    size_t i = 0;

    while (i + 1 < sizeof primes / sizeof *primes && (primes[i] == other || ld % primes[i] == 0))
        i++;
    return primes[i];
}

static void make_pattern(int64_t ld, int turned, int other, struct pattern *out)
{
    const int p = period_of(ld, other), step = (int)(ld % p);

    out->period = p;
    out->row = turned ? 1 : step;
    out->along = turned ? step : 1;
    memset(out->value, -1, sizeof out->value);
    out->value[0] = 0;
    for (int i = 1; i < p; i++)
        out->value[i * i % p] = 1;
}

static void make_patterns(const struct nj_gemm *g, struct pattern *a, struct pattern *b)
{
    make_pattern(g->lda, g->kind == NJ_GEMM_TN, 0, a);
    make_pattern(g->ldb, g->kind != NJ_GEMM_NT, a->period, b);
}

/* ---- arrays on the device ---- */

static int take_pinned(nj_context *ctx)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    int rc;

    if (cu->pinned)
        return 0;
    rc = cu->driver.cuMemHostAlloc(&cu->pinned, PINNED_BYTES, 0);
    return nj_cuda_check(ctx, rc, "nj_gemm_prepare: pinned host memory");
}

static char *block_at(nj_context *ctx, int which)
{
    return (char *)nj_cuda_of(ctx)->pinned + (size_t)which * BLOCK_BYTES;
}

/* Fill an array: write a block to the device, and copy the filled part behind itself until all is full. */
static int fill(nj_context *ctx, const struct nj_lt_place *at, const void *to, size_t bytes,
                const char *block, size_t block_bytes)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    const uint64_t first = (uintptr_t)to;
    size_t have = block_bytes < bytes ? block_bytes : bytes;
    int rc = driver->cuMemcpyAsync(first, (uintptr_t)block, have, at->stream);

    while (rc == 0 && have < bytes) {
        const size_t more = have < bytes - have ? have : bytes - have;

        rc = driver->cuMemcpyAsync(first + have, first, more, at->stream);
        have += more;
    }
    return nj_cuda_check(ctx, rc, "filling the arrays of a GEMM");
}

static int fill_ones(nj_context *ctx, const struct nj_lt_place *at, const void *to, size_t bytes,
                     uint32_t one, size_t element)
{
    char *block = block_at(ctx, BLOCK_ONES);

    for (size_t i = 0; i < ONES_BYTES; i += element)
        write_bits(block + i, one, element);
    return fill(ctx, at, to, bytes, block, ONES_BYTES);
}

static int fill_pattern(nj_context *ctx, const struct nj_lt_place *at, int which, const void *to,
                        size_t bytes, const struct pattern *p, const struct format *f)
{
    const size_t element = format_bytes(f), once = (size_t)p->period * element;
    char *block = block_at(ctx, which);

    for (int i = 0; i < p->period; i++)
        write_bits(block + (size_t)i * element, encode(f, p->value[i]), element);
    for (size_t i = 1; i < REPEATS; i++)
        memcpy(block + i * once, block, once);
    return fill(ctx, at, to, bytes, block, REPEATS * once);
}

static int wait_for(nj_context *ctx, const struct nj_lt_place *at)
{
    return nj_cuda_check(ctx, nj_cuda_of(ctx)->driver.cuStreamSynchronize(at->stream),
                         "a GEMM that is tried");
}

int nj_lt_fill_scales(nj_context *ctx, const struct nj_gemm *g, const struct nj_lt_place *at,
                      size_t bytes)
{
    enum { BLOCK_ONE = 127 }; /* UE8M0: 2^0 */
    const int blocks = ctx->info.f8 == NJ_F8_BLOCKS && !g->one_scale;
    TRY(take_pinned(ctx));

    TRY(fill_ones(ctx, at, at->a_scale, bytes,
                  blocks ? BLOCK_ONE : encode(format_of(NJ_CUDA_R_32F), 1), blocks ? 1 : 4));
    return wait_for(ctx, at);
}

/* ---- expected products ---- */

/* Return the sum of two positions modulo the period. */
static int around(int place, int step, int period)
{
    return place + step < period ? place + step : place + step - period;
}

static void expect(struct nj_lt_known *k, const struct format *f, const struct pattern *a,
                   const struct pattern *b, short *before)
{
    const int all = a->period * b->period, span = k->g->K % all, start = k->g->beta != 0;
    const size_t element = k->element_bytes, half = (size_t)b->period * element;
    int column[LONGEST], i = 0, j = 0;
    short sum = 0;

    for (int n = 0; n < b->period; n++)
        column[n * b->row % b->period] = n;
    for (int t = 0; t < all; t++) {
        before[t] = sum;
        sum = (short)(sum + a->value[i] * b->value[j]);
        i = around(i, a->along, a->period);
        j = around(j, b->along, b->period);
    }
    for (int t = 0; t < all; t++) { /* i and j are zero again */
        unsigned char *row = k->expected + (size_t)i * 2 * half;
        unsigned char *at = row + (size_t)column[j] * element;

        write_bits(at, encode(f, start + before[around(t, span, all)] - before[t]), element);
        memcpy(at + half, at, element);
        i = around(i, a->along, a->period);
        j = around(j, b->along, b->period);
    }
}

static int make_expected(nj_context *ctx, struct nj_lt_known *k, const struct pattern *a,
                         const struct pattern *b)
{
    const struct format *f = format_of(nj_lt_type(ctx, k->g->c_dtype));
    const size_t pairs = (size_t)a->period * (size_t)b->period;
    short *before = malloc(pairs * sizeof *before);

    k->element_bytes = format_bytes(f);
    k->bytes =
        size_mul((size_t)(k->g->M - 1) * (size_t)k->g->ldc + (size_t)k->g->N, k->element_bytes);
    k->row_period = a->period;
    k->column_period = b->period;
    k->row_step = a->row;
    k->expected = malloc(2 * pairs * k->element_bytes);
    if (before && k->expected)
        expect(k, f, a, b, before);
    free(before);
    return before && k->expected ? 0 : nj_fail(ctx, NJ_E_NOMEM, "out of host memory");
}

int nj_lt_known_begin(nj_context *ctx, const struct nj_gemm *g, const struct nj_lt_place *at,
                      const size_t operand_bytes[2], struct nj_lt_known *out)
{
    const int type = nj_lt_type(ctx, g->ab_dtype), a_type = g->a_e5m2 ? NJ_CUDA_R_8F_E5M2 : type;
    struct pattern a, b;
    int rc = take_pinned(ctx);

    *out = (struct nj_lt_known){.g = g, .at = at};
    make_patterns(g, &a, &b);
    if (rc == 0)
        rc = make_expected(ctx, out, &a, &b);
    if (rc == 0)
        rc = fill_pattern(ctx, at, BLOCK_A, at->b, operand_bytes[1], &a, format_of(a_type));
    if (rc == 0)
        rc = fill_pattern(ctx, at, BLOCK_B, at->a, operand_bytes[0], &b, format_of(type));
    return rc != 0 ? rc : wait_for(ctx, at);
}

void nj_lt_known_end(struct nj_lt_known *k)
{
    free(k->expected);
    k->expected = NULL;
}

static uint32_t initial_bits(const nj_context *ctx, const struct nj_lt_known *k)
{
    const uint32_t nan = k->element_bytes == 2 ? UINT16_MAX : UINT32_MAX;

    return k->g->beta != 0 ? encode(format_of(nj_lt_type(ctx, k->g->c_dtype)), 1) : nan;
}

int nj_lt_known_clear(nj_context *ctx, const struct nj_lt_known *k)
{
    const uint64_t c = (uintptr_t)k->at->c;
    int rc;

    if (k->g->beta != 0)
        rc = fill_ones(ctx, k->at, k->at->c, k->bytes, initial_bits(ctx, k), k->element_bytes);
    else
        rc = nj_cuda_check(
            ctx, nj_cuda_of(ctx)->driver.cuMemsetD8Async(c, 0xff, k->bytes, k->at->stream),
            "filling the result of a GEMM");
    return rc != 0 ? rc : wait_for(ctx, k->at);
}

/* ---- comparing ---- */

/* Return whether two elements are equal; zero has two signs. */
static int is_same(uint32_t got, uint32_t want, size_t bytes)
{
    const uint32_t sign = 1u << (8 * bytes - 1);

    return got == want || ((got | want) & ~sign & (uint32_t)((1ull << 8 * bytes) - 1)) == 0;
}

/* Return the index of the first of `count` elements that differs, or count. */
static size_t first_other(const unsigned char *got, const unsigned char *want, size_t count,
                          size_t bytes)
{
    if (memcmp(got, want, count * bytes) == 0)
        return count;
    for (size_t i = 0; i < count; i++)
        if (!is_same(read_bits(got + i * bytes, bytes), read_bits(want + i * bytes, bytes), bytes))
            return i;
    return count;
}

static int says_wrong(struct nj_lt_known *k, size_t row, size_t column, uint32_t got, uint32_t want)
{
    snprintf(k->where, sizeof k->where, "element [%zu, %zu] has the bits 0x%0*x, not 0x%0*x", row,
             column, (int)(2 * k->element_bytes), got, (int)(2 * k->element_bytes), want);
    return 1;
}

static int row_is_wrong(struct nj_lt_known *k, size_t row, size_t column, size_t count,
                        const unsigned char *got)
{
    const size_t element = k->element_bytes, period = (size_t)k->column_period;
    const size_t place = row * (size_t)k->row_step % (size_t)k->row_period;
    const unsigned char *line = k->expected + place * 2 * period * element;

    while (count > 0) {
        const size_t from = column % period, most = 2 * period - from;
        const size_t n = count < most ? count : most;
        const unsigned char *want = line + from * element;
        const size_t at = first_other(got, want, n, element);

        if (at < n)
            return says_wrong(k, row, column + at, read_bits(got + at * element, element),
                              read_bits(want + at * element, element));
        got += n * element;
        column += n;
        count -= n;
    }
    return 0;
}

/* Return whether the bytes between two rows have changed. */
static int gap_is_wrong(struct nj_lt_known *k, size_t row, size_t column, size_t count,
                        const unsigned char *got, uint32_t initial)
{
    const size_t element = k->element_bytes;

    for (size_t i = 0; i < count; i++)
        if (read_bits(got + i * element, element) != initial)
            return says_wrong(k, row, column + i, read_bits(got + i * element, element), initial);
    return 0;
}

/* Compare elements from the first one on, across the ends of rows. */
static int piece_is_wrong(struct nj_lt_known *k, size_t first, size_t count,
                          const unsigned char *got, uint32_t initial)
{
    const size_t ld = (size_t)k->g->ldc, columns = (size_t)k->g->N;
    int wrong = 0;

    while (count > 0 && !wrong) {
        const size_t row = first / ld, column = first % ld;
        const size_t most = (column < columns ? columns : ld) - column;
        const size_t n = count < most ? count : most;

        wrong = column < columns ? row_is_wrong(k, row, column, n, got)
                                 : gap_is_wrong(k, row, column, n, got, initial);
        got += n * k->element_bytes;
        first += n;
        count -= n;
    }
    return wrong;
}

static size_t depth_bytes(size_t bytes, enum nj_lt_depth depth)
{
    const size_t part = bytes / depths[depth].part, most = depths[depth].most;
    const size_t wanted = part > LEAST_BYTES ? part : LEAST_BYTES;

    return wanted < most ? wanted : most;
}

int nj_lt_known_has_more(const struct nj_lt_known *k)
{
    const size_t quick = depth_bytes(k->bytes, NJ_LT_QUICK);

    return quick < k->bytes && quick < depth_bytes(k->bytes, NJ_LT_THOROUGH);
}

/* Choose the pieces that are compared. A step of whole rows and 0.618 of a row, or a step of which a whole number
 * and 0.618 make a row, visits all columns evenly: pieces meet the tiles of each row of tiles, and no column is left
 * out. */
struct nj_lt_sample nj_lt_sample_of(size_t bytes, size_t row, enum nj_lt_depth depth)
{
    const size_t wanted = depth_bytes(bytes, depth);
    const size_t piece = row < PIECE_LEAST ? PIECE_LEAST : row < PIECE_MOST ? row : PIECE_MOST;
    const size_t width = bytes < piece ? bytes : piece;
    size_t pitch = bytes / (wanted / width + 1);

    if (wanted >= bytes)
        return (struct nj_lt_sample){width, width, bytes / width};
    pitch = pitch >= row ? pitch / row * row + row * 618 / 1000
                         : row * 1000 / (row / pitch * 1000 + 618);
    pitch = pitch > width ? pitch / 16 * 16 : width;
    return (struct nj_lt_sample){width, pitch, (bytes - width) / pitch + 1};
}

static int compare_pieces(nj_context *ctx, struct nj_lt_known *k, const struct nj_lt_sample *s,
                          uint64_t from, int *wrong)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    const unsigned char *got = (const unsigned char *)block_at(ctx, BLOCKS);
    const size_t element = k->element_bytes, first = (from - (uintptr_t)k->at->c) / element;
    const struct nj_memcpy_2d copy = {.from_type = NJ_CU_MEMORYTYPE_UNIFIED,
                                      .from = from,
                                      .from_pitch = s->pitch,
                                      .to_type = NJ_CU_MEMORYTYPE_UNIFIED,
                                      .to = (uintptr_t)got,
                                      .to_pitch = s->width,
                                      .width = s->width,
                                      .height = s->count};
    TRY(nj_cuda_check(ctx, driver->cuMemcpy2DAsync(&copy, k->at->stream),
                      "reading the result of a GEMM"));

    TRY(wait_for(ctx, k->at));
    for (size_t i = 0; i < s->count && !*wrong; i++)
        *wrong = piece_is_wrong(k, first + i * s->pitch / element, s->width / element,
                                got + i * s->width, initial_bits(ctx, k));
    return 0;
}

int nj_lt_known_compare(nj_context *ctx, struct nj_lt_known *k, enum nj_lt_depth depth, int *wrong)
{
    const size_t row = (size_t)k->g->ldc * k->element_bytes;
    const struct nj_lt_sample all = nj_lt_sample_of(k->bytes, row, depth);
    const struct nj_lt_sample last = {all.width, all.width, 1};
    const uint64_t c = (uintptr_t)k->at->c;
    struct nj_lt_sample some = all;
    int rc = 0;

    *wrong = 0;
    for (size_t i = 0; i < all.count && rc == 0 && !*wrong; i += some.count) {
        some.count = SAMPLE_BYTES / all.width;
        if (some.count > all.count - i)
            some.count = all.count - i;
        rc = compare_pieces(ctx, k, &some, c + i * all.pitch, wrong);
    }
    if (rc == 0 && !*wrong)
        rc = compare_pieces(ctx, k, &last, c + k->bytes - last.width, wrong);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * cublaslt_multiply.c: a product, by OpenBLAS in float32: operands widened, the sum scaled, beta times
 * what was there added, all rounded once, to nearest, ties to even.
 */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cublaslt.h"

enum { CUDA_OUT_OF_MEMORY = 2, CUDA_ILLEGAL_ADDRESS = 700 };

size_t lt_type_bytes(int type)
{
    return type == LT_F32 ? 4 : type == LT_F16 || type == LT_BF16 ? 2 : lt_is_f8(type) ? 1 : 0;
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A number of `exponent` and `mantissa` bits; e4m3 has no infinity. */
static float widen(uint32_t bits, int exponent, int mantissa, int has_infinity)
{
    const uint32_t e = bits >> mantissa & ((1u << exponent) - 1), m = bits & ((1u << mantissa) - 1);
    const int bias = (1 << (exponent - 1)) - 1;
    const float sign = bits >> (exponent + mantissa) ? -1 : 1;
    if (e == (1u << exponent) - 1 && (has_infinity || m == (1u << mantissa) - 1))
        return m ? NAN : sign * INFINITY;
    if (e == 0)
        return sign * ldexpf((float)m, 1 - bias - mantissa);
    return sign * ldexpf((float)(m | 1u << mantissa), (int)e - bias - mantissa);
}

static float read_f32(const void *at)
{
    float x;
    memcpy(&x, at, sizeof x);
    return x;
}

static float read_f16(const void *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return widen(bits, 5, 10, 1);
}

static float read_bf16(const void *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return from_bits((uint32_t)bits << 16);
}

static float read_e4m3(const void *at)
{
    return widen(*(const uint8_t *)at, 4, 3, 0);
}

static float read_e5m2(const void *at)
{
    return widen(*(const uint8_t *)at, 5, 2, 1);
}

static void write_f32(void *at, float x)
{
    memcpy(at, &x, sizeof x);
}

/* rintf rounds to nearest, ties to even, in the mode that a process starts in. */
static void write_f16(void *at, float x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const float size = fabsf(x);
    uint16_t bits;
    if (isnan(x))
        bits = 0x7fff;
    else if (size >= 65520)
        bits = 0x7c00;
    else if (size < 0x1p-14f)
        bits = (uint16_t)rintf(size * 0x1p24f); /* steps of the smallest number */
    else {
        int exponent;
        const float fraction = frexpf(size, &exponent); /* 0.5 and above */
        bits = (uint16_t)(((exponent + 13) << 10) + (int)rintf(fraction * 2048));
    }
    bits |= isnan(x) ? 0 : sign;
    memcpy(at, &bits, sizeof bits);
}

static void write_bf16(void *at, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint16_t out = (uint16_t)bits;
    memcpy(at, &out, sizeof out);
}

typedef float read_fn(const void *at);
typedef void write_fn(void *at, float x);

static read_fn *reader(int type)
{
    return type == LT_F32    ? read_f32
           : type == LT_F16  ? read_f16
           : type == LT_BF16 ? read_bf16
           : type == LT_E4M3 ? read_e4m3
                             : read_e5m2;
}

static write_fn *writer(int type)
{
    return type == LT_F32 ? write_f32 : type == LT_F16 ? write_f16 : write_bf16;
}

/* A matrix in float32 without gaps, to be freed; NULL with *error. Gaps between columns need not be
 * written. */
static float *load(const struct lt_product *p, const struct lt_layout *l, uint64_t at, int *error)
{
    const size_t element = lt_type_bytes(l->type);
    read_fn *const read = reader(l->type);
    float *out = malloc(l->rows * l->columns * sizeof *out);
    if (!out)
        *error = CUDA_OUT_OF_MEMORY;
    for (uint64_t j = 0; out && j < l->columns; j++) {
        const uint64_t column = at + j * (uint64_t)l->ld * element;
        const char *from = p->hook->bytes(column, l->rows * element, 0, "a matrix product");
        if (!from) {
            free(out);
            *error = CUDA_ILLEGAL_ADDRESS;
            return NULL;
        }
        for (uint64_t i = 0; i < l->rows; i++)
            out[j * l->rows + i] = read(from + i * element);
    }
    return out;
}

/* Scales of an operand: `step` floats from that of a row of the result (first operand) or of a column (second) to
 * the next. */
struct scales {
    const float *at;
    uint64_t step;
};

/* Multiplies an operand, whose columns are as long as sums, by the scales of its blocks: exponents above 2^-127, of a
 * tile of 128 columns and 4 blocks in 512 bytes, of which 16 are for columns 32 apart. */
static int scale_blocks(const struct lt_product *p, int i, const struct lt_layout *l, float *x)
{
    const uint64_t tiles = (l->rows + 127) / 128, bytes = (l->columns + 127) / 128 * tiles * 512;
    const uint8_t *scale = p->hook->bytes(p->desc.scale[i], bytes, 0, "scales of a matrix product");
    if (!scale)
        return CUDA_ILLEGAL_ADDRESS;
    for (uint64_t j = 0; j < l->columns; j++)
        for (uint64_t k = 0; k < l->rows; k++) {
            const uint64_t tile = j / 128 * tiles + k / 128;
            const uint8_t e = scale[tile * 512 + j % 32 * 16 + j % 128 / 32 * 4 + k % 128 / 32];
            x[j * l->rows + k] *= e == 255 ? NAN : ldexpf(1, e - 127);
        }
    return 0;
}

static int load_scales(const struct lt_product *p, struct scales scale[2])
{
    static const float one = 1;
    const uint64_t count[2] = {p->d.rows, p->d.columns};
    for (int i = 0; i < 2; i++) {
        const uint64_t step = p->desc.mode[i] == LT_OUTER_VECTOR;
        scale[i] = (struct scales){&one, step};
        if (p->desc.mode[i] == LT_BLOCKS || (!step && !p->desc.scale[i]))
            continue;
        scale[i].at = p->hook->bytes(p->desc.scale[i], (step ? count[i] : 1) * sizeof(float), 0,
                                     "scales of a matrix product");
        if (!scale[i].at)
            return CUDA_ILLEGAL_ADDRESS;
    }
    return 0;
}

static int store(const struct lt_product *p, const float *sum)
{
    const struct lt_layout *d = &p->d;
    const size_t element = lt_type_bytes(d->type);
    read_fn *const read = reader(d->type);
    write_fn *const write = writer(d->type);
    struct scales scale[2];
    if (load_scales(p, scale))
        return CUDA_ILLEGAL_ADDRESS;
    for (uint64_t j = 0; j < d->columns; j++) {
        const uint64_t column = p->at_d + j * (uint64_t)d->ld * element;
        char *to = p->hook->bytes(column, d->rows * element, 0 == p->beta, "a matrix product");
        to = to ? p->hook->bytes(column, d->rows * element, 1, "a matrix product") : NULL;
        if (!to)
            return CUDA_ILLEGAL_ADDRESS;
        for (uint64_t i = 0; i < d->rows; i++) {
            float x = p->alpha * sum[j * d->rows + i];
            x *= scale[0].at[i * scale[0].step];
            x *= scale[1].at[j * scale[1].step];
            if (p->beta != 0)
                x += p->beta * read(to + i * element);
            write(to + i * element, x);
        }
    }
    return 0;
}

/* Elements of the tile around the middle, or all: 64 more than they should be. */
static void spoil(const struct lt_product *p, float *sum)
{
    const uint64_t m = p->d.rows, n = p->d.columns;
    const uint64_t rows = p->wrong < 0 || (uint64_t)p->wrong > m ? m : (uint64_t)p->wrong;
    const uint64_t columns = p->wrong < 0 || (uint64_t)p->wrong > n ? n : (uint64_t)p->wrong;
    for (uint64_t j = (n - columns) / 2; j < (n - columns) / 2 + columns; j++)
        for (uint64_t i = (m - rows) / 2; i < (m - rows) / 2 + rows; i++)
            sum[j * m + i] += 64;
}

/* cuBLASLt promises no order of a sum. Here it is by halves, so that a kernel of ours, which goes from the first
 * factor to the last, differs from it in its last bits on every processor. */
static void multiply(const struct lt_product *p, int k, const float *a, const float *b, float *sum)
{
    const int ta = p->desc.trans[0], tb = p->desc.trans[1];
    const int m = (int)p->d.rows, n = (int)p->d.columns, bounds[] = {0, k / 2, k};
    for (int i = 0; i < 2; i++) {
        const size_t from = (size_t)bounds[i];
        cblas_sgemm(CblasColMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                    m, n, bounds[i + 1] - bounds[i], 1, a + from * (ta ? 1 : p->a.rows),
                    (int)p->a.rows, b + from * (tb ? p->b.rows : 1), (int)p->b.rows, 1, sum, m);
    }
}

int lt_multiply(void *argument)
{
    const struct lt_product *p = argument;
    const int m = (int)p->d.rows, n = (int)p->d.columns;
    const int k = (int)(p->desc.trans[0] ? p->a.rows : p->a.columns);
    int error = p->hook->product();
    float *a = error ? NULL : load(p, &p->a, p->at_a, &error);
    float *b = a ? load(p, &p->b, p->at_b, &error) : NULL;
    float *sum = b ? calloc((size_t)m * (size_t)n, sizeof *sum) : NULL;
    if (b && !sum)
        error = CUDA_OUT_OF_MEMORY;
    for (int i = 0; sum && !error && i < 2; i++)
        if (p->desc.mode[i] == LT_BLOCKS)
            error = scale_blocks(p, i, i == 0 ? &p->a : &p->b, i == 0 ? a : b);
    if (sum && !error) {
        multiply(p, k, a, b, sum);
        if (p->wrong)
            spoil(p, sum);
        error = store(p, sum);
    }
    free(a);
    free(b);
    free(sum);
    return error;
}

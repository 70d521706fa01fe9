/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest_gemm.c: GEMMs against sums in double, for each kind and type that the device has, in two shapes: one with
 * few tiles, and one with as many as large GPUs get.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cases.h"
#include "internal.h"

/* Types of A and B, and of C, as stored. For NJ_F8 also the scales, and whether A is E5M2, as gradients are. */
static const struct types {
    enum nj_dtype ab, c;
    enum nj_f8_scales scales;
    int e5m2;
} all_types[] = {
    {NJ_F32, NJ_F32, NJ_F8_NONE, 0}, {NJ_LP, NJ_LP, NJ_F8_NONE, 0},
    {NJ_LP, NJ_F32, NJ_F8_NONE, 0},  {NJ_F8, NJ_LP, NJ_F8_ROWS, 0},
    {NJ_F8, NJ_LP, NJ_F8_BLOCKS, 0}, {NJ_F8, NJ_F32, NJ_F8_BLOCKS, 0},
    {NJ_F8, NJ_LP, NJ_F8_ONE, 0},    {NJ_F8, NJ_F32, NJ_F8_ONE, 0},
    {NJ_F8, NJ_LP, NJ_F8_ONE, 1},    {NJ_F8, NJ_F32, NJ_F8_ONE, 1},
};
static const char *const kinds[] = {"NT", "NN", "TN"};
enum { TILE_BYTES = 512, BLOCK = 32 }; /* bytes of a tile of block scales; elements of a block */

struct matrix {
    size_t rows, columns;
    enum case_type type;
    double *values;        /* values sent, rounded to the type */
    unsigned char *stored; /* bytes sent; for C later the bytes read back */
    void *device;
};

/* Scales of an operand of NJ_F8. */
struct scales {
    size_t bytes;
    unsigned char *stored;
    void *device;
};

struct trial {
    struct nj_gemm g;
    int f16; /* whether NJ_LP is float16 */
    enum nj_f8_scales scales;
    struct matrix matrix[3]; /* A, B and C as stored */
    struct scales scale[2];  /* scales of A and B */
    /* op(A) and op(B)^T, with their scales: K numbers for each row, and for each column, of the result. */
    double *operand[2];
    char name[64], label[40];
};

static size_t count_of(const struct matrix *m)
{
    return m->rows * m->columns;
}

static size_t bytes_of(const struct matrix *m)
{
    return count_of(m) * nj_case_type_bytes(m->type);
}

static enum case_type case_type_of(enum nj_dtype dtype, int e5m2)
{
    return dtype == NJ_F32 ? CASE_F32 : dtype == NJ_LP ? CASE_LP : e5m2 ? CASE_E5M2 : CASE_F8;
}

/* ---- names ---- */

static const char *type_name(enum nj_dtype dtype, int f16)
{
    return dtype == NJ_F32 ? "float32" : f16 ? "float16" : "bfloat16";
}

static void name_trial(const struct types *types, struct trial *t)
{
    static const char *const scales[] = {
        [NJ_F8_ROWS] = "rows", [NJ_F8_BLOCKS] = "blocks", [NJ_F8_ONE] = "one scale"};
    const char *kind = kinds[t->g.kind], *c = type_name(types->c, t->f16);

    if (types->ab == NJ_F8)
        snprintf(t->name, sizeof t->name, "GEMM %s %s (%s) to %s", kind,
                 types->e5m2 ? "e5m2 x e4m3" : "e4m3", scales[types->scales], c);
    else
        snprintf(t->name, sizeof t->name, "GEMM %s %s%s%s", kind, type_name(types->ab, t->f16),
                 types->ab == types->c ? "" : " to ", types->ab == types->c ? "" : c);
    snprintf(t->label, sizeof t->label, "%d x %d x %d", t->g.M, t->g.N, t->g.K);
}

/* ---- operands ---- */

/* Return a leading dimension: a multiple of `multiple` elements with a gap of at least that between rows. */
static int64_t ld_of(int columns, int multiple)
{
    return (columns + multiple - 1) / multiple * multiple + multiple;
}

static void shape(enum nj_gemm_kind kind, const struct types *types, const int *mnk, int multiple,
                  struct trial *t)
{
    const int M = mnk[0], N = mnk[1], K = mnk[2];
    const int scaled = types->ab == NJ_F8;
    struct nj_gemm *g = &t->g;

    *g = (struct nj_gemm){.kind = kind,
                          .ab_dtype = types->ab,
                          .c_dtype = types->c,
                          .M = M,
                          .N = N,
                          .K = K,
                          .lda = ld_of(kind == NJ_GEMM_TN ? M : K, multiple),
                          .ldb = ld_of(kind == NJ_GEMM_NT ? K : N, multiple),
                          .ldc = ld_of(N, multiple),
                          .beta = scaled && types->c == NJ_LP ? 0 : 0.5f,
                          .scale = 0.75f,
                          .one_scale = types->scales == NJ_F8_ONE,
                          .a_e5m2 = types->e5m2};
    t->scales = types->scales;
    t->matrix[0] = (struct matrix){.rows = (size_t)(kind == NJ_GEMM_TN ? K : M),
                                   .columns = (size_t)g->lda,
                                   .type = case_type_of(types->ab, types->e5m2)};
    t->matrix[1] = (struct matrix){.rows = (size_t)(kind == NJ_GEMM_NT ? N : K),
                                   .columns = (size_t)g->ldb,
                                   .type = case_type_of(types->ab, 0)};
    t->matrix[2] = (struct matrix){
        .rows = (size_t)M, .columns = (size_t)g->ldc, .type = case_type_of(types->c, 0)};
    name_trial(types, t);
}

/* Fill a matrix with normal values, rounded to the type, so that the operands are known to the last bit; C, to which
 * the product is added, is uniform. FP8 operands are integers from -4 to 4: sums of 64 products, with scales of 1 and
 * 2, are at most 2^12, and so are exact in any order, even in the accumulator of 14 bits that fast accumulation has on
 * sm_90 (docs/performance.md). */
static void fill(const struct trial *t, int i, struct matrix *m)
{
    enum { MOST = 4 };
    static const char *const names[] = {"a", "b", "c"};
    const int whole = t->scales != NJ_F8_NONE;
    const struct case_arg a = {.type = m->type,
                               .fill = whole    ? CASE_FILL_WHOLE
                                       : i == 2 ? CASE_FILL_UNIFORM
                                                : CASE_FILL_NORMAL,
                               .fill_value = 2 * MOST + 1,
                               .scale = 1};
    const size_t n = count_of(m);

    nj_case_fill_plain(&a, nj_case_stream_of(1, "gemm", "selftest", names[i]), (int64_t)n,
                       m->values);
    for (size_t k = 0; k < n; k++)
        m->values[k] = nj_case_round_to_type(m->values[k] - (whole ? MOST : 0), m->type, t->f16);
    nj_case_encode(m->stored, m->values, (int64_t)n, m->type, t->f16);
}

static int send(nj_context *ctx, nj_stream *s, void **device, const void *bytes, size_t count)
{
    TRY(nj_alloc(ctx, NJ_MEM_DEVICE, count, device));

    return nj_copy(s, *device, bytes, count);
}

static int make(nj_context *ctx, nj_stream *s, struct trial *t, int i)
{
    struct matrix *m = &t->matrix[i];

    m->values = nj_case_allocate(count_of(m), sizeof *m->values);
    m->stored = nj_case_allocate(bytes_of(m), 1);
    if (!m->values || !m->stored)
        return NJ_E_NOMEM;
    fill(t, i, m);
    return send(ctx, s, &m->device, m->stored, bytes_of(m));
}

/* Return the exponent of the scale of a row, or of a block of a row. It varies along rows, and for blocks along both
 * directions. */
static int scale_exponent(const struct trial *t, size_t row, size_t block)
{
    return t->scales == NJ_F8_ROWS     ? row % 3 % 2
           : t->scales == NJ_F8_BLOCKS ? (row + block) % 2
                                       : 1;
}

static size_t scales_bytes(const struct trial *t, size_t rows)
{
    const size_t tiles = ((size_t)t->g.K + 127) / 128 * ((rows + 127) / 128);

    return t->scales == NJ_F8_BLOCKS ? tiles * TILE_BYTES
           : t->scales == NJ_F8_ROWS ? rows * sizeof(float)
                                     : sizeof(float);
}

/* Store UE8M0 scales as cuBLASLt expects them (contracts/kernels/e4m3_blocks.yaml): a tile of 128 rows and 4 blocks is
 * 32 groups of 16 bytes, for four rows that are 32 apart. */
static void store_blocks(const struct trial *t, size_t rows, unsigned char *out)
{
    const size_t blocks = (size_t)t->g.K / BLOCK, tiles = ((size_t)t->g.K + 127) / 128;

    for (size_t r = 0; r < rows; r++)
        for (size_t b = 0; b < blocks; b++)
            out[(r / 128 * tiles + b / 4) * TILE_BYTES + r % 32 * 16 + r % 128 / 32 * 4 + b % 4] =
                (unsigned char)(127 + scale_exponent(t, r, b));
}

static int make_scales(nj_context *ctx, nj_stream *s, const struct trial *t, size_t rows,
                       struct scales *out)
{
    out->bytes = scales_bytes(t, rows);
    out->stored = nj_case_allocate(out->bytes, 1);
    if (!out->stored)
        return NJ_E_NOMEM;
    if (t->scales == NJ_F8_BLOCKS)
        store_blocks(t, rows, out->stored);
    for (size_t r = 0; t->scales != NJ_F8_BLOCKS && r < out->bytes / sizeof(float); r++)
        ((float *)(void *)out->stored)[r] = ldexpf(1, scale_exponent(t, r, 0));
    return send(ctx, s, &out->device, out->stored, out->bytes);
}

/* Return an operand with its scales as `rows` rows of K numbers. If `turned` is set, the rows are columns of the stored
 * matrix. */
static double *operand_of(const struct trial *t, const struct matrix *m, size_t rows, int turned)
{
    const size_t K = (size_t)t->g.K;
    double *out = nj_case_allocate(rows * K, sizeof *out);

    for (size_t r = 0; out && r < rows; r++)
        for (size_t k = 0; k < K; k++) {
            const double x = m->values[turned ? k * m->columns + r : r * m->columns + k];

            out[r * K + k] = t->scales ? ldexp(x, scale_exponent(t, r, k / BLOCK)) : x;
        }
    return out;
}

static void end(nj_context *ctx, struct trial *t)
{
    for (int i = 0; i < 3; i++) {
        nj_free(ctx, NJ_MEM_DEVICE, t->matrix[i].device);
        free(t->matrix[i].values);
        free(t->matrix[i].stored);
    }
    for (int i = 0; i < 2; i++) {
        nj_free(ctx, NJ_MEM_DEVICE, t->scale[i].device);
        free(t->scale[i].stored);
        free(t->operand[i]);
    }
}

/* ---- results ---- */

/* Return the number of roundings in a sum of K products, each by at most the last of 24 bits of the sum of their
 * magnitudes: K + 2 in float32. Tensor cores add exactly, except for bits that they shift out: one of each product, and
 * one of the sum of every four or more (M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA
 * tensor cores", PeerJ CS 7, 2021: a V100 keeps no bit beyond the 24, later GPUs keep some). That makes K and K / 2
 * more. Integers are exact. */
static double roundings(const struct nj_gemm *g)
{
    return g->ab_dtype == NJ_F32 ? g->K + 2 : g->ab_dtype == NJ_LP ? g->K + g->K / 2 + 2 : 0;
}

/* Return the bound of an error. Rounding the result to bfloat16 (8 bits) or float16 (11 bits) adds half a unit of its
 * last place; the smallest numbers of float16 are 2^-24 apart. */
static double bound_of(const struct trial *t, double sum, double size)
{
    const double off = roundings(&t->g) * 0x1p-23 * size;

    if (t->g.c_dtype == NJ_F32)
        return off;
    return off + (t->f16 ? 0x1p-11 : 0x1p-8) * (fabs(sum) + off) + (t->f16 ? 0x1p-25 : 0);
}

struct worst {
    double share, got, want; /* share: error as a fraction of its bound */
    size_t row, column;
};

static double value_of(const struct trial *t, size_t i)
{
    return nj_case_decode(t->matrix[2].stored, (int64_t)i, t->matrix[2].type, t->f16);
}

static void compare_one(const struct trial *t, size_t r, size_t c, struct worst *worst)
{
    const struct nj_gemm *g = &t->g;
    const size_t K = (size_t)g->K, i = r * t->matrix[2].columns + c;
    const double *a = t->operand[0] + r * K, *b = t->operand[1] + c * K;
    const double old = t->matrix[2].values[i] * (double)g->beta, got = value_of(t, i);
    double sum = 0, size = 0, off;

#pragma omp simd reduction(+ : sum, size)
    for (size_t k = 0; k < K; k++) {
        sum += a[k] * b[k];
        size += fabs(a[k] * b[k]);
    }
    sum = sum * (double)g->scale + old;
    size = size * (double)g->scale + fabs(old);
    off = fabs(got - sum);
    if (off > 0 || isnan(off))
        off /= bound_of(t, sum, size);
    if (!(off <= worst->share))
        *worst = (struct worst){isnan(off) ? (double)INFINITY : off, got, sum, r, c};
}

/* Compare the rows on all cores. Among equal errors the first row counts, whichever core finds it. */
static struct worst compare(const struct trial *t)
{
    struct worst worst = {.share = 0};

#pragma omp parallel for schedule(static)
    for (int r = 0; r < t->g.M; r++) {
        struct worst own = {.share = 0};

        for (int c = 0; c < t->g.N; c++)
            compare_one(t, (size_t)r, (size_t)c, &own);
#pragma omp critical(nj_selftest_worst)
        if (own.share > worst.share || (own.share == worst.share && own.row < worst.row))
            worst = own;
    }
    return worst;
}

/* Return the first row that was written beyond its end, or -1. */
static int written_past(const struct trial *t)
{
    const struct matrix *out = &t->matrix[2];

    for (int r = 0; r < t->g.M; r++)
        for (size_t c = (size_t)t->g.N; c < out->columns; c++) {
            const size_t i = (size_t)r * out->columns + c;

            if (value_of(t, i) != out->values[i])
                return r;
        }
    return -1;
}

static void judge(const struct trial *t, struct nj_trial *out, char *wrong, size_t bytes)
{
    const struct worst worst = compare(t);
    const int past = written_past(t);

    out->error = worst.share;
    out->tolerance = 1;
    if (worst.share > 1)
        snprintf(wrong, bytes, "[%zu, %zu] is %.9g, not %.9g", worst.row, worst.column, worst.got,
                 worst.want);
    else if (past >= 0)
        snprintf(wrong, bytes, "wrote past the end of row %d", past);
    out->verdict = wrong[0] ? NJ_FAILED : NJ_PASSED;
}

/* ---- one ---- */

static int run(nj_context *ctx, nj_stream *s, struct trial *t)
{
    const size_t rows[2] = {(size_t)t->g.M, (size_t)t->g.N};
    struct matrix *m = t->matrix;
    int sync, rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = make(ctx, s, t, i);
    for (int i = 0; i < 2 && rc == 0; i++) {
        const int turned = i == 0 ? t->g.kind == NJ_GEMM_TN : t->g.kind != NJ_GEMM_NT;

        t->operand[i] = operand_of(t, &m[i], rows[i], turned);
        rc = !t->operand[i] ? NJ_E_NOMEM
             : t->scales    ? make_scales(ctx, s, t, rows[i], &t->scale[i])
                            : 0;
    }
    if (rc == 0)
        rc = nj_gemm_run_scaled(s, &t->g,
                                &(struct nj_gemm_operands){.c = m[2].device,
                                                           .a = m[0].device,
                                                           .b = m[1].device,
                                                           .a_scale = t->scale[0].device,
                                                           .b_scale = t->scale[1].device});
    if (rc == 0)
        rc = nj_copy(s, m[2].stored, m[2].device, bytes_of(&m[2]));
    sync = nj_stream_sync(s);
    return rc != 0 ? rc : sync;
}

/* Return whether the library lacks an FP8 GEMM. It may, whatever its version promises: training then uses 16 bits. A
 * wrong result is a failure. */
static int is_absent(const struct trial *t, int rc, int wrong)
{
    return t->scales && !wrong && (rc == NJ_E_GEMM || rc == NJ_E_UNSUPPORTED);
}

static int try_shape(nj_context *ctx, nj_stream *s, struct trial *t, struct nj_trial *out,
                     char *wrong, size_t bytes)
{
    const uint32_t wrong_before = nj_context_device(ctx)->gemms_wrong;
    int rc = nj_gemm_prepare(ctx, &t->g);

    out->verdict = NJ_FAILED;
    if (is_absent(t, rc, nj_context_device(ctx)->gemms_wrong > wrong_before)) {
        out->verdict = NJ_ABSENT;
        snprintf(wrong, bytes, "%s", nj_context_error(ctx));
        return 0;
    }
    if (rc == 0)
        rc = run(ctx, s, t);
    if (rc == 0)
        judge(t, out, wrong, bytes);
    else
        snprintf(wrong, bytes, "%s", nj_context_error(ctx));
    end(ctx, t);
    return rc == NJ_E_NOMEM ? rc : 0;
}

/* Shapes with odd numbers of rows. The second shape is large enough for the large tiles of cuBLASLt and of the
 * Vulkan backend, whose rows may begin at any element. cuBLASLt requires rows of multiples of 16 for E4M3; runs use
 * such rows for other types, too. */
static const struct shapes {
    const char *backend;
    int multiple, mnk[2][3];
} all_shapes[] = {{"vulkan", 1, {{67, 130, 37}, {5, 128 * 128, 19}}},
                  {NULL, 16, {{67, 144, 64}, {517, 1040, 64}}}};

static int try_types(nj_context *ctx, nj_stream *s, enum nj_gemm_kind kind,
                     const struct types *types, struct nj_self_test *test)
{
    const struct nj_device_info *info = nj_context_device(ctx);
    const struct shapes *shapes = &all_shapes[strcmp(info->backend, "vulkan") != 0];
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        char wrong[600] = "";
        struct trial t = {.f16 = info->lp_is_f16};
        struct nj_trial out = {.name = t.name, .label = t.label, .is_gemm = 1, .wrong = wrong};
        const double from = clock_ms();

        shape(kind, types, shapes->mnk[i], shapes->multiple, &t);
        rc = try_shape(ctx, s, &t, &out, wrong, sizeof wrong);
        out.ms = (float)(clock_ms() - from);
        rc = rc != 0 ? nj_selftest_no_memory(test, &out) : nj_selftest_count(ctx, test, &out);
    }
    return rc;
}

static int has(const struct nj_device_info *info, const struct types *types)
{
    if (types->ab == NJ_F8)
        return info->f8 == types->scales || (info->f8 == NJ_F8_ROWS && types->scales == NJ_F8_ONE);
    return types->ab == NJ_F32 || info->lp;
}

int nj_selftest_gemms(nj_context *ctx, nj_stream *s, struct nj_self_test *t)
{
    const struct nj_device_info *info = nj_context_device(ctx);
    int rc = 0;

    for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++)
        for (int kind = NJ_GEMM_NT; kind <= NJ_GEMM_TN && rc == 0; kind++)
            if (has(info, &all_types[i]) && (all_types[i].ab != NJ_F8 || kind == NJ_GEMM_NT) &&
                (all_types[i].c != NJ_LP || info->lp))
                rc = try_types(ctx, s, (enum nj_gemm_kind)kind, &all_types[i], t);
    return rc;
}

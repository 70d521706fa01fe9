/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_layout.c: see quantized_layout.h. Numbers and scales are kept, so the weights are those of the format in
 * float32, rounded once. Where a group is larger than a block, its scale is repeated.
 */
#include "model/quantized_layout.h"

#include "base/integers.h"
#include "base/try.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "io/json_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- checks ---- */

enum { FLOATS = 1 << NJ_TYPE_F32 | 1 << NJ_TYPE_F16 | 1 << NJ_TYPE_BF16 };
enum { HALVES = 1 << NJ_TYPE_F16 | 1 << NJ_TYPE_BF16 };
_Static_assert((int)ST_I64 < 31 && (int)ST_TYPES <= 63, "a set of types is an int64_t");

static int refuse_part(const struct quantized_matrix *m, const struct tensor *t)
{
    return fail(NJ_E_FORMAT,
                "%s: tensor %s is not what quantized weights of %lld rows and %lld columns come "
                "with, by quantization_config; fetch the folder again",
                m->dir, t->name, (long long)m->spec->shape[0], (long long)m->spec->shape[1]);
}

static int need(const struct quantized_matrix *m, int part, const char *name)
{
    return m->part[part] ? 0
                         : fail(NJ_E_FORMAT,
                                "%s: tensor %s is quantized, and its part %s is missing; fetch the "
                                "folder again",
                                m->dir, m->spec->name, name);
}

/* Check that a part, which must be present, has one of these types and this shape; columns 0: it is a list. */
static int check_part(const struct quantized_matrix *m, int part, const char *name, int64_t types,
                      int64_t rows, int64_t columns)
{
    const struct tensor *t = m->part[part];
    TRY(need(m, part, name));
    const bool same =
        t->rank == (columns ? 2 : 1) && t->shape[0] == rows && (!columns || t->shape[1] == columns);
    return same && (types >> (int)t->dtype & 1) ? 0 : refuse_part(m, t);
}

/* Choose the largest of these blocks that groups of columns, and rows, are made of. */
static int choose(const struct quantized_matrix *m, const enum nj_tensor_type *types, int count,
                  struct packed *p, struct tensor *t)
{
    for (int i = 0; i < count; i++) {
        p->elements = tensor_type_block(types[i]);
        t->dtype = types[i];
        if (p->group_columns % p->elements == 0 && p->columns % p->elements == 0)
            return 0;
    }
    return fail(
        NJ_E_UNSUPPORTED,
        "%s: tensor %s has %lld columns and a scale for each %lld; both must be multiples of "
        "%d: use the bfloat16 release of the model, or a GGUF file of it",
        m->dir, m->spec->name, (long long)p->columns, (long long)p->group_columns, p->elements);
}

static int choose_i4(const struct quantized_matrix *m, struct packed *p, struct tensor *t)
{
    static const enum nj_tensor_type types[] = {NJ_TYPE_I4_128, NJ_TYPE_I4_64, NJ_TYPE_I4_32};
    p->group_columns = m->scheme->columns ? m->scheme->columns : p->columns;
    if (p->group_columns > p->columns)
        p->group_columns = p->columns;
    return choose(m, types, 3, p, t);
}

/* ---- blocks ---- */

/* Return number `at` of the eight of four bits in a 32-bit word, the lowest first. */
static int number_in(const struct packed_part *words, int64_t word, int64_t at)
{
    return words->data[4 * word + at / 2] >> at % 2 * 4 & 15;
}

/* Put scale i, a float16 or bfloat16, and the zero point. */
static void put_i4_head(const struct packed_part *scales, int64_t i, int zero, unsigned char *to)
{
    memcpy(to, scales->data + 2 * i, 2);
    to[2] = (unsigned char)zero;
    to[3] = scales->type == NJ_TYPE_BF16;
}

static float float_in(const struct packed_part *p, int64_t i)
{
    const struct tensor t = {.dtype = (enum nj_tensor_type)p->type, .data = p->data};
    float x;
    tensor_to_f32(&t, i, 1, &x);
    return x;
}

/* ---- bitsandbytes: numbers and scales of all elements in a row ---- */

enum { NF4_STATE, NF4_WEIGHT, NF4_ABSMAX, NF4_CODE, NF4_NESTED_ABSMAX, NF4_NESTED_CODE };

static float nf4_absmax(const struct packed *p, int64_t group)
{
    const struct packed_part *absmax = &p->part[NF4_ABSMAX];
    if (absmax->type != ST_U8)
        return float_in(absmax, group);
    const float scaled = float_in(&p->part[NF4_NESTED_CODE], absmax->data[group]) *
                         float_in(&p->part[NF4_NESTED_ABSMAX], group / p->nested);
    return scaled + p->offset;
}

static void nf4_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const int64_t at = row * p->columns + column;
    const float absmax = nf4_absmax(p, at / p->group_columns);
    memcpy(to, &absmax, sizeof absmax);
    memcpy(to + 4, p->part[NF4_WEIGHT].data + at / 2, (size_t)p->elements / 2);
}

/* Return a whole number above 0 of the quantization state, or 0. */
static int64_t size_in(const json_t *state, const char *name)
{
    const json_int_t size = json_integer_value(json_object_get(state, name));
    return size > 0 && size <= INT32_MAX ? (int64_t)size : 0;
}

static int read_nf4_state(const struct quantized_matrix *m, struct packed *p)
{
    const struct tensor *t = m->part[NF4_STATE];
    char where[4200];
    json_t *state;
    snprintf(where, sizeof where, "%s: tensor %s", m->dir, t->name);
    int rc = json_read_text(where, t->data, t->bytes, JSON_REJECT_DUPLICATES,
                            "fetch the folder again", &state);
    if (rc != 0)
        return rc;
    const json_t *shape = json_object_get(state, "shape");
    const json_t *type = json_object_get(state, "quant_type");
    p->group_columns = size_in(state, "blocksize");
    p->nested = size_in(state, "nested_blocksize");
    p->offset = (float)json_number_value(json_object_get(state, "nested_offset"));
    if (!json_is_string(type) || strcmp(json_string_value(type), "nf4") != 0 ||
        p->group_columns == 0 || !isfinite(p->offset) || json_array_size(shape) != 2 ||
        json_integer_value(json_array_get(shape, 0)) != p->rows ||
        json_integer_value(json_array_get(shape, 1)) != p->columns)
        rc = refuse_part(m, t);
    json_decref(state);
    return rc;
}

/* Check that the code is the one that NF4 blocks are read by. */
static int check_nf4_code(const struct quantized_matrix *m)
{
    unsigned char block[36] = {0};
    const float one = 1;
    float code[16], want[64];
    const struct tensor t = {.dtype = NJ_TYPE_NF4, .data = block};
    TRY(check_part(m, NF4_CODE, "quant_map", 1 << NJ_TYPE_F32, 16, 0));
    memcpy(block, &one, sizeof one);
    for (int i = 0; i < 8; i++)
        block[4 + i] = (unsigned char)(2 * i << 4 | (2 * i + 1));
    tensor_to_f32(&t, 0, 64, want);
    tensor_to_f32(m->part[NF4_CODE], 0, 16, code);
    bool same = true;
    for (int i = 0; i < 16; i++)
        same = same && code[i] == want[i];
    if (!same)
        return fail(
            NJ_E_UNSUPPORTED,
            "%s: tensor %s is not the code of NF4; use the bfloat16 release of the model, or "
            "a GGUF file of it",
            m->dir, m->part[NF4_CODE]->name);
    return 0;
}

static int open_nf4(const struct quantized_matrix *m, struct packed *p, struct tensor *t)
{
    static const enum nj_tensor_type types[] = {NJ_TYPE_NF4};
    int rc = read_nf4_state(m, p);
    if (rc == 0)
        rc = check_nf4_code(m);
    if (rc == 0)
        rc = choose(m, types, 1, p, t);
    if (rc == 0)
        rc = need(m, NF4_WEIGHT, "weight");
    if (rc == 0)
        rc = need(m, NF4_ABSMAX, "absmax");
    if (rc != 0)
        return rc;
    const int64_t groups = i64_ceil_div(p->rows * p->columns, p->group_columns);
    const bool nested = (int)m->part[NF4_ABSMAX]->dtype == ST_U8;
    p->block = nf4_block;
    if (m->part[NF4_WEIGHT]->bytes != (size_t)(p->rows * p->columns / 2))
        return refuse_part(m, m->part[NF4_WEIGHT]);
    rc = check_part(m, NF4_ABSMAX, "absmax", 1 << ST_U8 | 1 << NJ_TYPE_F32, groups, 0);
    if (rc != 0 || !nested)
        return rc;
    if (p->nested == 0)
        return refuse_part(m, m->part[NF4_STATE]);
    rc = check_part(m, NF4_NESTED_CODE, "nested_quant_map", 1 << NJ_TYPE_F32, 256, 0);
    return rc != 0 ? rc
                   : check_part(m, NF4_NESTED_ABSMAX, "nested_absmax", 1 << NJ_TYPE_F32,
                                i64_ceil_div(groups, p->nested), 0);
}

/* ---- GPTQ: columns by rows; a word has eight columns of a row ---- */

enum { TURNED_WEIGHT, TURNED_ZEROS, TURNED_SCALES, GPTQ_ORDER };

static void gptq_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const int64_t group = column / p->group_columns;
    const int zero = number_in(&p->part[TURNED_ZEROS], group * (p->rows / 8) + row / 8, row % 8);
    put_i4_head(&p->part[TURNED_SCALES], group * p->rows + row, zero + p->zero_more, to);
    for (int e = 0; e < p->elements; e += 8)
        memcpy(to + 4 + e / 2, p->part[TURNED_WEIGHT].data + 4 * ((column + e) / 8 * p->rows + row),
               4);
}

/* Check the shapes of zeros and scales by groups. */
static int check_turned(const struct quantized_matrix *m, const struct packed *p)
{
    const int64_t groups = i64_ceil_div(p->columns, p->group_columns);
    if (p->rows % 8 != 0)
        return refuse_part(m, m->part[TURNED_WEIGHT]);
    TRY(check_part(m, TURNED_ZEROS, "qzeros", 1 << ST_I32, groups, p->rows / 8));
    return check_part(m, TURNED_SCALES, "scales", HALVES, groups, p->rows);
}

/* Check that columns of a group lie together. */
static int check_order(const struct quantized_matrix *m, const struct packed *p)
{
    const unsigned char *order = m->part[GPTQ_ORDER] ? m->part[GPTQ_ORDER]->data : NULL;
    int rc = order || m->scheme->ordered
                 ? check_part(m, GPTQ_ORDER, "g_idx", 1 << ST_I32, p->columns, 0)
                 : 0;
    for (int64_t c = 0; order && rc == 0 && c < p->columns; c++) {
        int32_t group;
        memcpy(&group, order + 4 * c, sizeof group);
        if (group != c / p->group_columns)
            rc = fail(NJ_E_UNSUPPORTED,
                      "%s: tensor %s spreads the columns of a group (desc_act); use a release with "
                      "desc_act false, the bfloat16 release or a GGUF file",
                      m->dir, m->part[GPTQ_ORDER]->name);
    }
    return rc;
}

static int open_gptq(const struct quantized_matrix *m, struct packed *p, struct tensor *t)
{
    int rc = choose_i4(m, p, t);
    if (rc == 0)
        rc = check_part(m, TURNED_WEIGHT, "qweight", 1 << ST_I32, p->columns / 8, p->rows);
    if (rc == 0)
        rc = check_turned(m, p);
    p->block = gptq_block;
    return rc != 0 ? rc : check_order(m, p);
}

/* ---- AWQ: columns by rows; a word has eight rows of a column, the even ones first ---- */

/* Places of the numbers of rows in a word. */
static const int awq_place[8] = {0, 4, 1, 5, 2, 6, 3, 7};

static int awq_number(const struct packed *p, int part, int64_t line, int64_t row)
{
    return number_in(&p->part[part], line * (p->rows / 8) + row / 8, awq_place[row % 8]);
}

static void awq_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const int64_t group = column / p->group_columns;
    put_i4_head(&p->part[TURNED_SCALES], group * p->rows + row,
                awq_number(p, TURNED_ZEROS, group, row), to);
    for (int e = 0; e < p->elements; e += 2)
        to[4 + e / 2] = (unsigned char)(awq_number(p, TURNED_WEIGHT, column + e, row) |
                                        awq_number(p, TURNED_WEIGHT, column + e + 1, row) << 4);
}

static int open_awq(const struct quantized_matrix *m, struct packed *p, struct tensor *t)
{
    int rc = choose_i4(m, p, t);
    if (rc == 0)
        rc = check_part(m, TURNED_WEIGHT, "qweight", 1 << ST_I32, p->columns, p->rows / 8);
    p->block = awq_block;
    return rc != 0 ? rc : check_turned(m, p);
}

/* ---- compressed-tensors, pack-quantized: rows by columns; a word has eight columns ---- */

enum { CT_WEIGHT, CT_SCALE, CT_ZERO, CT_ORDER, CT_SHAPE };

/* Return the zero point. Numbers are stored with 8 added, in words of eight rows, or in bytes as they are. */
static int ct_zero(const struct packed *p, int64_t row, int64_t group)
{
    const struct packed_part *zero = &p->part[CT_ZERO];
    const int64_t groups = i64_ceil_div(p->columns, p->group_columns);
    if (!zero->data)
        return 8;
    if (zero->type == ST_I32)
        return number_in(zero, row / 8 * groups + group, row % 8);
    return (zero->data[row * groups + group] + 8) & 15;
}

static void ct_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const int64_t group = column / p->group_columns;
    const int64_t groups = i64_ceil_div(p->columns, p->group_columns);
    put_i4_head(&p->part[CT_SCALE], row * groups + group, ct_zero(p, row, group), to);
    memcpy(to + 4, p->part[CT_WEIGHT].data + (row * p->columns + column) / 2,
           (size_t)p->elements / 2);
}

static int check_ct_zero(const struct quantized_matrix *m, const struct packed *p, int64_t groups)
{
    if (!m->part[CT_ZERO])
        return m->scheme->has_zeros ? need(m, CT_ZERO, "weight_zero_point") : 0;
    if ((int)m->part[CT_ZERO]->dtype == ST_I32)
        return check_part(m, CT_ZERO, "weight_zero_point", 1 << ST_I32, i64_ceil_div(p->rows, 8),
                          groups);
    return check_part(m, CT_ZERO, "weight_zero_point", 1 << ST_I8, p->rows, groups);
}

static int open_ct(const struct quantized_matrix *m, struct packed *p, struct tensor *t)
{
    int rc = choose_i4(m, p, t);
    if (rc != 0)
        return rc;
    const int64_t groups = i64_ceil_div(p->columns, p->group_columns);
    if (m->part[CT_ORDER])
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s spreads the columns of a group (actorder); use a release "
                    "without it, the bfloat16 release or a GGUF file",
                    m->dir, m->part[CT_ORDER]->name);
    if (m->scheme->ordered && (rc = need(m, CT_ORDER, "weight_g_idx")) != 0)
        return rc;
    rc = check_part(m, CT_WEIGHT, "weight_packed", 1 << ST_I32, p->rows, p->columns / 8);
    if (rc == 0)
        rc = check_part(m, CT_SCALE, "weight_scale", HALVES, p->rows, groups);
    p->block = ct_block;
    return rc != 0 ? rc : check_ct_zero(m, p, groups);
}

/* ---- e4m3: rows by columns ---- */

enum { F8_WEIGHT, F8_SCALE, F8_SCALE_INV }; /* then scales of inputs, which stay as they are */

/* Make a block; the scale of one with a NaN is NaN. */
static void fp8_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const int64_t across = i64_ceil_div(p->columns, p->group_columns);
    const struct packed_part *scales = &p->part[p->part[F8_SCALE].data ? F8_SCALE : F8_SCALE_INV];
    const unsigned char *from = p->part[F8_WEIGHT].data + row * p->columns + column;
    float scale = float_in(scales, row / p->group_rows * across + column / p->group_columns);
    for (int e = 0; e < p->elements; e++)
        if ((from[e] & 0x7f) == 0x7f)
            scale = NAN;
    memcpy(to, &scale, sizeof scale);
    memcpy(to + 4, from, (size_t)p->elements);
}

/* Return how many of `all` share a scale, of which there are `scales`; said: the value of the configuration. 0: the
 * values do not agree. */
static int64_t shared(int64_t all, int64_t scales, int64_t said)
{
    if (scales == 1 && (said == 0 || said >= all))
        return all;
    if (said == 0)
        return scales == all ? 1 : 0;
    return i64_ceil_div(all, said) == scales ? said : scales == all ? 1 : 0;
}

static int open_fp8(const struct quantized_matrix *m, struct packed *p, struct tensor *t)
{
    static const enum nj_tensor_type types[] = {NJ_TYPE_F8_128, NJ_TYPE_F8_32};
    const struct tensor *scale = m->part[F8_SCALE] ? m->part[F8_SCALE] : m->part[F8_SCALE_INV];
    TRY(check_part(m, F8_WEIGHT, "weight", 1 << ST_F8_E4M3, p->rows, p->columns));
    if (!scale)
        TRY(need(m, F8_SCALE, "weight_scale"));
    p->block = fp8_block;
    p->group_rows = shared(p->rows, scale->rank > 0 ? scale->shape[0] : 1, m->scheme->rows);
    p->group_columns =
        shared(p->columns, scale->rank > 1 ? scale->shape[1] : 1, m->scheme->columns);
    if (scale->rank > 2 || !((int64_t)FLOATS >> (int)scale->dtype & 1) || p->group_rows == 0 ||
        p->group_columns == 0 || (m->part[F8_SCALE] && m->part[F8_SCALE_INV]))
        return refuse_part(m, scale);
    return choose(m, types, 2, p, t);
}

/* ---- the table ---- */

static const struct quantized_layout layouts[] = {
    [QUANTIZED_NF4] = {{"weight.quant_state.bitsandbytes__nf4", "weight", "weight.absmax",
                        "weight.quant_map", "weight.nested_absmax", "weight.nested_quant_map"},
                       open_nf4},
    [QUANTIZED_GPTQ] = {{"qweight", "qzeros", "scales", "g_idx"}, open_gptq},
    [QUANTIZED_AWQ] = {{"qweight", "qzeros", "scales"}, open_awq},
    [QUANTIZED_PACKED] = {{"weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx",
                           "weight_shape"},
                          open_ct},
    [QUANTIZED_FP8] = {{"weight", "weight_scale", "weight_scale_inv", "input_scale",
                        "activation_scale"},
                       open_fp8},
};

const struct quantized_layout *quantized_layout(enum quantized_format format)
{
    return &layouts[format];
}

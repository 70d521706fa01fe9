/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_scheme.c: see quantized_scheme.h.
 */
#include "model/quantized_scheme.h"

#include "base/try.h"
#include "io/error.h"
#include "io/json_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHERWISE "use the bfloat16 release of the model, or a GGUF file of it"

struct reading {
    const char *path;
    struct quantized_scheme *out;
};

/* Refuse a field; value NULL: it is missing. */
static int refuse(const struct reading *r, const char *field, const json_t *value,
                  const char *wanted)
{
    char *text = json_shown(value, JSON_COMPACT);
    const int rc = fail(NJ_E_UNSUPPORTED, "%s: quantization_config: %s is %.80s; %s", r->path,
                        field, text ? text : "missing", wanted);
    free(text);
    return rc;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Return the first of two names that is present; makers of such files use both for the same field. */
static const json_t *either(const json_t *from, const char *name, const char *other)
{
    const json_t *value = json_object_get(from, name);
    return value && !json_is_null(value) ? value : json_object_get(from, other);
}

/* Read the number of columns that share a scale; null and -1: all. */
static int read_group(const struct reading *r, const json_t *value)
{
    const json_int_t size = json_integer_value(value);
    r->out->columns = size > 0 ? (int64_t)size : 0;
    if (!value || json_is_null(value) || (json_is_integer(value) && (size == -1 || size > 0)))
        return 0;
    return refuse(r, "group_size", value, "it must be -1 or a whole number above 0");
}

/* Read the numbers of rows and columns that share a scale; null: as the shape of the scales says. */
static int read_block(const struct reading *r, const char *name, const json_t *value)
{
    const json_int_t rows = json_integer_value(json_array_get(value, 0));
    const json_int_t columns = json_integer_value(json_array_get(value, 1));
    if (!value || json_is_null(value))
        return 0;
    if (json_array_size(value) != 2 || rows < 1 || columns < 1)
        return refuse(r, name, value, "it must be a list of two whole numbers above 0");
    r->out->rows = rows;
    r->out->columns = columns;
    return 0;
}

static int read_bits(const struct reading *r, const char *name, const json_t *value, int bits)
{
    char wanted[120];
    snprintf(wanted, sizeof wanted, "%d bits are read: " OTHERWISE, bits);
    return json_integer_value(value) == bits ? 0 : refuse(r, name, value, wanted);
}

static int read_nf4(const struct reading *r, const json_t *c)
{
    const json_t *type = json_object_get(c, "bnb_4bit_quant_type");
    const json_t *four = either(c, "load_in_4bit", "_load_in_4bit");
    r->out->format = QUANTIZED_NF4;
    if (!json_is_true(four))
        return refuse(r, "load_in_4bit", four, "of bitsandbytes 4 bits are read: " OTHERWISE);
    return is_text(type, "nf4")
               ? 0
               : refuse(r, "bnb_4bit_quant_type", type, "of bitsandbytes nf4 is read: " OTHERWISE);
}

static int read_gptq(const struct reading *r, const json_t *c)
{
    const json_t *form = json_object_get(c, "checkpoint_format");
    const bool second = is_text(form, "gptq_v2");
    r->out->format = QUANTIZED_GPTQ;
    r->out->zero_more = second ? 0 : 1;
    if (form && !json_is_null(form) && !second && !is_text(form, "gptq"))
        return refuse(r, "checkpoint_format", form, "gptq and gptq_v2 are read: " OTHERWISE);
    const json_t *dynamic = json_object_get(c, "dynamic");
    if (json_object_size(dynamic) > 0)
        return refuse(r, "dynamic", dynamic, "one scheme for all layers is read: " OTHERWISE);
    r->out->ordered = json_is_true(json_object_get(c, "desc_act"));
    TRY(read_bits(r, "bits", json_object_get(c, "bits"), 4));
    return read_group(r, json_object_get(c, "group_size"));
}

static int read_awq(const struct reading *r, const json_t *c)
{
    const json_t *version = json_object_get(c, "version");
    r->out->format = QUANTIZED_AWQ;
    if (version && !is_text(version, "gemm") && !is_text(version, "GEMM"))
        return refuse(r, "version", version, "of AWQ the version gemm is read: " OTHERWISE);
    TRY(read_bits(r, "bits", either(c, "bits", "w_bit"), 4));
    return read_group(r, either(c, "group_size", "q_group_size"));
}

static int read_fp8(const struct reading *r, const json_t *c)
{
    const json_t *fmt = json_object_get(c, "fmt");
    r->out->format = QUANTIZED_FP8;
    if (fmt && !is_text(fmt, "e4m3"))
        return refuse(r, "fmt", fmt, "e4m3 is read: " OTHERWISE);
    return read_block(r, "weight_block_size", json_object_get(c, "weight_block_size"));
}

static int read_mxfp4(const struct reading *r, const json_t *c)
{
    (void)c;
    r->out->format = QUANTIZED_MXFP4;
    return 0;
}

/* Read one of config_groups. */
static int read_weights(const struct reading *r, const json_t *w)
{
    const bool floats = r->out->format == QUANTIZED_FP8;
    const json_t *type = json_object_get(w, "type"), *order = json_object_get(w, "actorder");
    r->out->ordered = json_is_true(order) || is_text(order, "group");
    r->out->has_zeros = json_is_false(json_object_get(w, "symmetric"));
    if (json_is_string(order) && !r->out->ordered && !is_text(order, "weight") &&
        !is_text(order, "static"))
        return refuse(r, "actorder", order, "static is read: " OTHERWISE);
    TRY(read_bits(r, "num_bits", json_object_get(w, "num_bits"), floats ? 8 : 4));
    if (!is_text(type, floats ? "float" : "int"))
        return refuse(r, "type", type,
                      floats ? "of this format float is read: " OTHERWISE
                             : "of this format int is read: " OTHERWISE);
    TRY(read_group(r, json_object_get(w, "group_size")));
    return read_block(r, "block_structure", json_object_get(w, "block_structure"));
}

/* Refuse steps other than quantization that are applied to weights. */
static int refuse_other_steps(const struct reading *r, const json_t *c)
{
    const json_t *transform = json_object_get(c, "transform_config");
    const json_t *sparsity = json_object_get(c, "sparsity_config");
    const json_t *form = json_object_get(sparsity, "format");
    if (json_object_size(transform) > 0)
        return refuse(r, "transform_config", transform,
                      "weights that were transformed are not read: " OTHERWISE);
    if (json_object_size(sparsity) > 0 && !is_text(form, "dense"))
        return refuse(r, "sparsity_config", sparsity, "of these dense is read: " OTHERWISE);
    return 0;
}

/* The formats of compressed-tensors. The last one is its name for FP8 weights whose inputs stay as they are. */
static const struct {
    const char *name;
    enum quantized_format format;
} compressed[] = {
    {"pack-quantized", QUANTIZED_PACKED},
    {"float-quantized", QUANTIZED_FP8},
    {"naive-quantized", QUANTIZED_FP8},
};

static int read_format(const struct reading *r, const json_t *name)
{
    for (size_t i = 0; i < sizeof compressed / sizeof *compressed; i++)
        if (is_text(name, compressed[i].name)) {
            r->out->format = compressed[i].format;
            return 0;
        }
    return refuse(r, "format", name,
                  "of compressed-tensors pack-quantized, float-quantized and naive-quantized are "
                  "read: " OTHERWISE);
}

static int read_compressed(const struct reading *r, const json_t *c)
{
    const json_t *group;
    json_t *groups = json_object_get(c, "config_groups");
    const struct quantized_scheme *out = r->out;
    const char *name;
    int rc = read_format(r, json_object_get(c, "format"));
    if (rc != 0 || (rc = refuse_other_steps(r, c)))
        return rc;
    if (json_object_size(groups) == 0)
        return refuse(r, "config_groups", groups, "fetch the folder again");
    struct quantized_scheme first = {.columns = -1};
    json_object_foreach(groups, name, group)
    {
        r->out->rows = r->out->columns = 0;
        rc = read_weights(r, json_object_get(group, "weights"));
        if (rc != 0)
            return rc;
        if (first.columns >= 0 &&
            (first.ordered != out->ordered || first.has_zeros != out->has_zeros ||
             first.rows != out->rows || first.columns != out->columns))
            return refuse(r, "config_groups", groups,
                          "groups of one size for all layers are read: " OTHERWISE);
        first = *out;
    }
    return 0;
}

static const struct method {
    const char *name;
    int (*read)(const struct reading *r, const json_t *c);
} methods[] = {
    {"bitsandbytes", read_nf4}, {"gptq", read_gptq},
    {"awq", read_awq},          {"compressed-tensors", read_compressed},
    {"fp8", read_fp8},          {"mxfp4", read_mxfp4},
};

int quantized_scheme(const char *path, const json_t *value, struct quantized_scheme *out)
{
    const struct reading r = {path, out};
    const json_t *name = json_object_get(value, "quant_method");
    *out = (struct quantized_scheme){0};
    if (!name && json_object_get(value, "load_in_4bit")) /* files older than quant_method */
        return read_nf4(&r, value);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (is_text(name, methods[i].name))
            return methods[i].read(&r, value);
    return refuse(
        &r, "quant_method", name,
        "bitsandbytes (NF4), gptq, awq, compressed-tensors, fp8 and mxfp4 are read: " OTHERWISE);
}

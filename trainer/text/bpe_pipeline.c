/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_pipeline.c: what a tokenizer.json says happens around the model: NFC before it, the stages
 * that cut words, the token that begins a text. Each part is an object with a type, or a Sequence
 * of them.
 */
#include "text/bpe_read.h"

#include "io/error.h"

#include <string.h>

struct part {
    const char *type;
    int (*read)(struct reading *r, const json_t *part);
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* An absent field counts as `missing`. */
static bool flag(const json_t *object, const char *name, bool missing)
{
    const json_t *value = json_object_get(object, name);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

/* Reads a part, or each of a Sequence whose members are called `list`. */
static int read_part(struct reading *r, const char *name, const char *list, const json_t *part,
                     const struct part *table)
{
    const char *type = text_of(part, "type");
    if (strcmp(type, "Sequence") == 0) {
        const json_t *member;
        size_t i;
        json_array_foreach(json_object_get(part, list), i, member)
        {
            int rc = read_part(r, name, list, member, table);
            if (rc)
                return rc;
        }
        return NJ_OK;
    }
    for (; table->type; table++)
        if (strcmp(type, table->type) == 0)
            return table->read(r, part);
    return bpe_refuse(r, name, part,
                      "this type is not supported; make token files with another program");
}

/* ---- normalizer ---- */

static int read_nfc(struct reading *r, const json_t *part)
{
    (void)part;
    r->bpe->nfc = true;
    return NJ_OK;
}

/* ---- pre_tokenizer ---- */

static int add_stage(struct reading *r, const json_t *part, const struct split *stage)
{
    if (r->byte_level || r->bpe->stages == STAGES_MOST)
        return bpe_refuse(r, "pre_tokenizer", part, "nothing may stand after ByteLevel");
    r->bpe->stage[r->bpe->stages++] = *stage;
    return NJ_OK;
}

static int read_split(struct reading *r, const json_t *part)
{
    const json_t *regex = json_object_get(json_object_get(part, "pattern"), "Regex");
    struct split stage;
    if (strcmp(text_of(part, "behavior"), "Isolated") != 0 || flag(part, "invert", false))
        return bpe_refuse(r, "pre_tokenizer", part, "behavior must be Isolated, without invert");
    if (!json_is_string(regex))
        return bpe_refuse(r, "pre_tokenizer", part, "its pattern must be a Regex");
    int rc = split_from_pattern(json_string_value(regex), json_string_length(regex), &stage);
    if (rc)
        return fail(rc, "%s: %s", r->path, fail_text());
    static const struct split valid = {.kind = SPLIT_VALID};
    if (stage.kind == SPLIT_PATTERN)
        rc = add_stage(r, part, &valid);
    if (!rc)
        rc = add_stage(r, part, &stage);
    if (rc)
        split_free(&stage);
    return rc;
}

static int read_digits(struct reading *r, const json_t *part)
{
    const struct split stage = {.kind = SPLIT_DIGITS,
                                .digits = flag(part, "individual_digits", false)};
    return add_stage(r, part, &stage);
}

static int read_byte_level(struct reading *r, const json_t *part)
{
    static const struct split prefix = {.kind = SPLIT_PREFIX}, words = {.kind = SPLIT_GPT2};
    int rc = flag(part, "add_prefix_space", true) ? add_stage(r, part, &prefix) : NJ_OK;
    if (!rc && flag(part, "use_regex", true))
        rc = add_stage(r, part, &words);
    if (!rc && r->byte_level)
        rc = bpe_refuse(r, "pre_tokenizer", part, "ByteLevel may stand there once");
    r->byte_level = true;
    return rc;
}

/* ---- post_processor, decoder ---- */

static int read_nothing(struct reading *r, const json_t *part)
{
    (void)r;
    (void)part;
    return NJ_OK;
}

/* One token before the text is supported; what is put after it is left to end_of_text. */
static int read_template(struct reading *r, const json_t *part)
{
    const json_t *piece;
    size_t i;
    json_array_foreach(json_object_get(part, "single"), i, piece)
    {
        if (json_object_get(piece, "Sequence"))
            return NJ_OK;
        const char *name = text_of(json_object_get(piece, "SpecialToken"), "id");
        const json_t *ids =
            json_object_get(json_object_get(json_object_get(part, "special_tokens"), name), "ids");
        const json_int_t id = json_integer_value(json_array_get(ids, 0));
        if (r->bpe->begin_of_text >= 0 || json_array_size(ids) != 1 ||
            !json_is_integer(json_array_get(ids, 0)) || id < 0 || id > INT32_MAX)
            return bpe_refuse(r, "post_processor.single", piece,
                              "one token before the text is supported");
        r->bpe->begin_of_text = (int32_t)id;
    }
    return NJ_OK;
}

int bpe_read_pipeline(struct reading *r)
{
    static const struct part normalizers[] = {{"NFC", read_nfc}, {NULL, NULL}};
    static const struct part splitters[] = {{"Split", read_split},
                                            {"Digits", read_digits},
                                            {"ByteLevel", read_byte_level},
                                            {NULL, NULL}};
    static const struct part processors[] = {
        {"ByteLevel", read_nothing}, {"TemplateProcessing", read_template}, {NULL, NULL}};
    static const struct part decoders[] = {{"ByteLevel", read_nothing}, {NULL, NULL}};
    static const struct {
        const char *name, *list;
        const struct part *table;
        bool required;
    } parts[] = {
        {"normalizer", "normalizers", normalizers, false},
        {"pre_tokenizer", "pretokenizers", splitters, true},
        {"post_processor", "processors", processors, false},
        {"decoder", "decoders", decoders, true},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const json_t *part = json_object_get(r->root, parts[i].name);
        if (!parts[i].required && (!part || json_is_null(part)))
            continue;
        int rc = read_part(r, parts[i].name, parts[i].list, part, parts[i].table);
        if (rc)
            return rc;
    }
    return r->byte_level ? NJ_OK
                         : bpe_refuse(r, "pre_tokenizer", json_object_get(r->root, "pre_tokenizer"),
                                      "it must have ByteLevel");
}

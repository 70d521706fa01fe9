/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_pipeline.c: the steps of a tokenizer.json around the model: the normalization before it,
 * the stages that split words, the token that begins a text. Each part is an object with a type,
 * or a Sequence of them. It also refuses what is not supported, here or in the model.
 */
#include "text/bpe_read.h"

#include "io/error.h"
#include "io/json_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int bpe_refuse(const struct reading *r, const char *name, const json_t *value, const char *remedy)
{
    char *text = json_shown(value, JSON_COMPACT);
    int rc = fail(NJ_E_UNSUPPORTED, "%s: %s is %.100s; %s", r->path, name, text ? text : "missing",
                  remedy);
    free(text);
    return rc;
}

struct part {
    const char *type;
    int (*read)(struct reading *r, const json_t *part);
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Return a flag; an absent field counts as `missing`. */
static bool flag(const json_t *object, const char *name, bool missing)
{
    const json_t *value = json_object_get(object, name);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

/* Read a part, or each of a Sequence whose members are called `list`. */
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
            if (rc != 0)
                return rc;
        }
        return 0;
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
    if (r->bpe->form == UNICODE_AS_IS) /* NFKC implies NFC */
        r->bpe->form = UNICODE_NFC;
    return 0;
}

static int read_nfkc(struct reading *r, const json_t *part)
{
    (void)part;
    r->bpe->form = UNICODE_NFKC;
    return 0;
}

#define SPACE "\xe2\x96\x81"

/* Return whether a Replace writes U+2581 for spaces, or spaces for it. */
static bool replaces(const json_t *part, const char *from, const char *to)
{
    return strcmp(text_of(json_object_get(part, "pattern"), "String"), from) == 0 &&
           strcmp(text_of(part, "content"), to) == 0;
}

/* Return whether a Replace writes two of U+2581 for one at the beginning of a stretch of text. */
static bool doubles(const json_t *part)
{
    return strcmp(text_of(json_object_get(part, "pattern"), "Regex"), "\\A" SPACE) == 0 &&
           strcmp(text_of(part, "content"), SPACE SPACE) == 0;
}

static int read_replace(struct reading *r, const json_t *part)
{
    if (r->bpe->early && doubles(part)) {
        r->bpe->doubled = true;
        return 0;
    }
    if (!replaces(part, " ", SPACE))
        return bpe_refuse(r, "normalizer", part, "only spaces can be replaced, by U+2581");
    r->bpe->spaces = r->bpe->early = true;
    return 0;
}

static int read_prepend(struct reading *r, const json_t *part)
{
    if (strcmp(text_of(part, "prepend"), SPACE) != 0)
        return bpe_refuse(r, "normalizer", part, "only U+2581 can be put before a text");
    r->bpe->prefix = PREFIX_EACH;
    return 0;
}

/* ---- pre_tokenizer ---- */

static int add_stage(struct reading *r, const json_t *part, const struct split *stage)
{
    if (r->byte_level)
        return bpe_refuse(r, "pre_tokenizer", part, "nothing may stand after ByteLevel");
    if (r->bpe->stages == STAGES_MOST - 1) /* the last stage is reserved for bpe_read.c */
        return bpe_refuse(r, "pre_tokenizer", part, "at most 31 steps are supported");
    r->bpe->stage[r->bpe->stages++] = *stage;
    return 0;
}

static bool has_stage(const struct bpe *b, enum split_kind kind)
{
    for (int i = 0; i < b->stages; i++)
        if (b->stage[i].kind == kind)
            return true;
    return false;
}

/* Read the use of a pattern's matches. */
static int read_rule(struct reading *r, const json_t *part, struct split_rule *out)
{
    static const char *const names[] = {[BEHAVIOR_ISOLATED] = "Isolated",
                                        [BEHAVIOR_REMOVED] = "Removed",
                                        [BEHAVIOR_PREVIOUS] = "MergedWithPrevious",
                                        [BEHAVIOR_NEXT] = "MergedWithNext",
                                        [BEHAVIOR_CONTIGUOUS] = "Contiguous"};
    *out = (struct split_rule){.invert = flag(part, "invert", false)};
    for (int i = 0; i <= BEHAVIOR_CONTIGUOUS; i++)
        if (strcmp(text_of(part, "behavior"), names[i]) == 0) {
            out->behavior = (enum split_behavior)i;
            return 0;
        }
    return bpe_refuse(r, "pre_tokenizer", part, "its behavior is not known");
}

/* Return whether a pattern is a list of texts without spaces or U+2581: any other sees spaces here
 * where the library has U+2581. */
static bool is_literal(const char *pattern)
{
    static const char special[] = ".*?+^$()[]{} ";
    const char *c = pattern;
    for (; c && *c && !strchr(special, *c); c++)
        if (*c == '\\' && !ispunct((unsigned char)*++c))
            return false;
    return c && !*c && !strstr(pattern, SPACE);
}

static bool is_without_spaces(const char *text)
{
    return text && !strchr(text, ' ') && !strstr(text, SPACE);
}

static int read_split(struct reading *r, const json_t *part)
{
    const json_t *pattern = json_object_get(part, "pattern");
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *text = json_object_get(pattern, "String");
    struct split_rule rule;
    struct split stage;
    TRY(read_rule(r, part, &rule));
    const bool removes_all = rule.behavior == BEHAVIOR_REMOVED && rule.invert;
    const char *at = json_string_value(regex ? regex : text);
    if (r->bpe->spaces && at && strcmp(at, " ") == 0 && !removes_all)
        return 0; /* no space is left to split at */
    if (r->bpe->spaces && !(regex ? is_literal(at) : is_without_spaces(at)))
        return bpe_refuse(r, "pre_tokenizer", part,
                          "where U+2581 stands for spaces, it may only split at a space, or at "
                          "texts without one");
    if (!json_is_string(regex) && json_string_length(text) == 0)
        return bpe_refuse(r, "pre_tokenizer", part, "its pattern must be a Regex or a String");
    int rc =
        json_is_string(regex)
            ? split_from_pattern(json_string_value(regex), json_string_length(regex), rule, &stage)
            : split_from_text(json_string_value(text), json_string_length(text), rule, &stage);
    if (rc != 0)
        return fail(rc, "%s: %s", r->path, fail_text());
    static const struct split valid = {.kind = SPLIT_VALID};
    if (stage.kind == SPLIT_PATTERN && !has_stage(r->bpe, SPLIT_VALID))
        rc = add_stage(r, part, &valid);
    if (rc == 0)
        rc = add_stage(r, part, &stage);
    if (rc != 0)
        split_free(&stage);
    return rc;
}

static int read_digits(struct reading *r, const json_t *part)
{
    const struct split stage = {.kind = SPLIT_DIGITS,
                                .digits = flag(part, "individual_digits", false)};
    return add_stage(r, part, &stage);
}

/* Read a Metaspace; newer files say prepend_scheme, older ones add_prefix_space. */
static int read_metaspace(struct reading *r, const json_t *part)
{
    static const struct split each = {.kind = SPLIT_SPACE};
    static const struct {
        const char *name;
        enum bpe_prefix prefix;
    } schemes[] = {{"always", PREFIX_LACKING}, {"first", PREFIX_FIRST}, {"never", PREFIX_NEVER}};
    const bool older = flag(part, "add_prefix_space", true);
    const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    int found = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(scheme ? scheme : older ? "always" : "never", schemes[i].name) == 0)
            found = i;
    if (found < 0 || strcmp(text_of(part, "replacement"), SPACE) != 0 ||
        r->bpe->prefix != PREFIX_NEVER || r->bpe->stages > 0)
        return bpe_refuse(r, "pre_tokenizer", part, "this Metaspace is not supported");
    r->bpe->spaces = true;
    r->bpe->prefix = schemes[found].prefix;
    return flag(part, "split", true) ? add_stage(r, part, &each) : 0;
}

static int read_byte_level(struct reading *r, const json_t *part)
{
    static const struct split prefix = {.kind = SPLIT_PREFIX}, words = {.kind = SPLIT_GPT2};
    int rc = flag(part, "add_prefix_space", true) ? add_stage(r, part, &prefix) : 0;
    if (rc == 0 && flag(part, "use_regex", true))
        rc = add_stage(r, part, &words);
    if (rc == 0 && r->byte_level)
        rc = bpe_refuse(r, "pre_tokenizer", part, "ByteLevel may stand there once");
    r->byte_level = true;
    return rc;
}

/* ---- post_processor, decoder ---- */

static int read_nothing(struct reading *r, const json_t *part)
{
    (void)r;
    (void)part;
    return 0;
}

static int read_replace_back(struct reading *r, const json_t *part)
{
    return replaces(part, SPACE, " ")
               ? 0
               : bpe_refuse(r, "decoder", part, "only U+2581 can be replaced, by a space");
}

/* Read a template. One token before the text is supported; tokens after it are left to
 * end_of_text. */
static int read_template(struct reading *r, const json_t *part)
{
    const json_t *piece;
    size_t i;
    json_array_foreach(json_object_get(part, "single"), i, piece)
    {
        if (json_object_get(piece, "Sequence"))
            return 0;
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
    return 0;
}

static const struct part normalizers[] = {{"NFC", read_nfc},
                                          {"NFKC", read_nfkc},
                                          {"Replace", read_replace},
                                          {"Prepend", read_prepend},
                                          {NULL, NULL}};
static const struct part splitters[] = {{"Split", read_split},
                                        {"Digits", read_digits},
                                        {"ByteLevel", read_byte_level},
                                        {"Metaspace", read_metaspace},
                                        {NULL, NULL}};
static const struct part processors[] = {
    {"ByteLevel", read_nothing}, {"TemplateProcessing", read_template}, {NULL, NULL}};
static const struct part byte_decoders[] = {{"ByteLevel", read_nothing}, {NULL, NULL}};
/* Decoders that need no action: ids are decoded one by one to the bytes that they stand for,
 * including the space before a text. */
static const struct part space_decoders[] = {
    {"Replace", read_replace_back}, {"ByteFallback", read_nothing}, {"Fuse", read_nothing},
    {"Strip", read_nothing},        {"Metaspace", read_nothing},    {NULL, NULL}};

/* Read a field of the file, if it is there. */
static int read_field(struct reading *r, const char *name, const char *list,
                      const struct part *table)
{
    const json_t *part = json_object_get(r->root, name);
    return !part || json_is_null(part) ? 0 : read_part(r, name, list, part, table);
}

/* Check that the file splits texts either as bytes or as spaces: there are two kinds of
 * tokenizers, and no file mixes them. */
static int check_kind(const struct reading *r)
{
    const struct bpe *b = r->bpe;
    const char *field = r->byte_level || b->form ? "normalizer" : "pre_tokenizer";
    const bool prefixed =
        (b->prefix != PREFIX_EACH || b->early) && (b->prefix == PREFIX_LACKING || !b->doubled);
    if (b->spaces ? !r->byte_level && !b->form && prefixed
                  : r->byte_level && b->prefix == PREFIX_NEVER)
        return 0;
    return bpe_refuse(r, field, json_object_get(r->root, field),
                      b->spaces || b->prefix ? "it does not go with the other steps"
                                             : "it must have ByteLevel");
}

int bpe_read_pipeline(struct reading *r)
{
    TRY(read_field(r, "normalizer", "normalizers", normalizers));
    TRY(read_field(r, "pre_tokenizer", "pretokenizers", splitters));
    TRY(read_field(r, "post_processor", "processors", processors));
    TRY(read_field(r, "decoder", "decoders", r->bpe->spaces ? space_decoders : byte_decoders));
    return check_kind(r);
}

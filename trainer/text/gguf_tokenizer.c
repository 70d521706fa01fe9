/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_tokenizer.c: the tokenizer in a GGUF file's metadata as a tokenizer.json. All tokens are
 * in its vocabulary, including the added ones, so that each has the id of its position.
 */
#include "text/gguf_tokenizer.h"

#include "io/error.h"
#include "io/json_text.h"
#include "text/bpe_read.h"
#include "text/bpe_spaces.h"
#include "text/gguf_pre.h"
#include "text/gguf_scores.h"
#include "text/metadata.h"
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name
#define AGAIN "fetch the file again, or convert the model again"

enum token_type { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

struct metadata {
    const struct gguf *g;
    struct gguf_text *token, *merge;
    int32_t *type;
    size_t tokens, merges;
    const struct gguf_pre *pre; /* pre-tokenizer; NULL: U+2581 stands for spaces */
    bool scored;                /* whether scores take the place of merges */
    bool prefix;                /* without a pre-tokenizer: whether texts get a space in front */
    int64_t bos, eos, padding;  /* ids of the special tokens; -1: none */
    bool begins;                /* whether texts begin with bos */
    json_t *root, *vocab, *added, *list; /* root owns the others; list: that of merges */
};

static bool is(struct gguf_text t, const char *name)
{
    return t.text && t.bytes == strlen(name) && memcmp(t.text, name, t.bytes) == 0;
}

bool gguf_tokenizer_is(const struct gguf *g)
{
    struct gguf_text model;
    return gguf_find(g, KEY("model")) != NULL &&
           (gguf_string(g, KEY("model"), &model) != 0 || !is(model, "no_vocab"));
}

/* ---- metadata ---- */

/* Read how texts are cut into words. */
static int read_pre(struct metadata *m)
{
    const char *path = m->g->path;
    struct gguf_text pre;
    char names[PRE_LIST_BYTES];
    TRY(gguf_string(m->g, KEY("pre"), &pre));
    if (!pre.text)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: " KEY("pre") ", which says how texts are cut into words, is missing; "
                                      "convert the model again with a newer llama.cpp",
                    path);
    m->pre = gguf_pre_find(pre);
    if (!m->pre)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is '%.*s', and %s are supported; use the model's Hugging Face folder, "
                    "or make token files with another program",
                    path, metadata_name(m->g, KEY("pre")), gguf_shown(pre), pre.text,
                    gguf_pre_names(names, sizeof names));
    m->begins = m->pre->begins;
    return 0;
}

static int read_kind(struct metadata *m)
{
    struct gguf_text model;
    TRY(gguf_string(m->g, KEY("model"), &model));
    m->scored = is(model, "llama");
    m->begins = m->scored;
    if ((m->scored || is(model, "gemma4")) && !m->g->apr)
        return gguf_bool(m->g, KEY("add_space_prefix"), m->scored, &m->prefix);
    if (is(model, "gpt2"))
        return read_pre(m);
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s is '%.*s'; byte-level BPE, gpt2,%s supported: make token files with "
                "another program",
                m->g->path, metadata_name(m->g, KEY("model")), gguf_shown(model), model.text,
                m->g->apr ? " is"
                          : " and SentencePiece with scores, llama, or merges, gemma4, are");
}

static int read_lists(struct metadata *m)
{
    size_t types;
    TRY(gguf_strings(m->g, KEY("tokens"), &m->token, &m->tokens));
    TRY(gguf_ints(m->g, KEY("token_type"), &m->type, &types));
    if (!m->scored)
        TRY(gguf_strings(m->g, KEY("merges"), &m->merge, &m->merges));
    if (!m->token || !m->type || (!m->scored && !m->merge))
        return fail(NJ_E_FORMAT, "%s: %s is missing; " AGAIN, m->g->path,
                    metadata_name(m->g, !m->token  ? KEY("tokens")
                                        : !m->type ? KEY("token_type")
                                                   : KEY("merges")));
    if (types != m->tokens)
        return fail(NJ_E_FORMAT, "%s: %s has %zu entries, %s %zu; " AGAIN, m->g->path,
                    metadata_name(m->g, KEY("tokens")), m->tokens,
                    metadata_name(m->g, KEY("token_type")), types);
    return 0;
}

/* Return whether a token stands for nothing: unused, or the converter's padding up to the
 * model's vocabulary. */
static bool is_absent(const struct metadata *m, size_t id)
{
    char padding[32];
    const size_t bytes = (size_t)snprintf(padding, sizeof padding, "[PAD%zu]", id);
    const struct gguf_text *t = &m->token[id];
    return m->type[id] == UNUSED || t->bytes == 0 ||
           (t->bytes == bytes && memcmp(t->text, padding, bytes) == 0);
}

static int read_id(const struct metadata *m, const char *key, int64_t *out)
{
    const int rc = gguf_int(m->g, key, -1, out);
    if (rc != 0 || *out == -1)
        return rc;
    if (*out < 0 || *out >= (int64_t)m->tokens || is_absent(m, (size_t)*out))
        return fail(NJ_E_FORMAT, "%s: %s is %lld, which no token has; " AGAIN, m->g->path,
                    metadata_name(m->g, key), (long long)*out);
    return 0;
}

/* Check an APR file. Files that were made from GGUF files have all fields; those made from
 * safetensors do not say which tokens are special, nor how texts are split. */
static int check_apr(const struct gguf *g)
{
    static const char *const needed[] = {KEY("tokens"), KEY("token_type"), KEY("merges"),
                                         KEY("pre")};
    for (size_t i = 0; g->apr && i < sizeof needed / sizeof *needed; i++)
        if (!gguf_find(g, needed[i]))
            return fail(NJ_E_UNSUPPORTED,
                        "%s: %s is missing, and its tokenizer cannot be used without it; use the "
                        "model's Hugging Face folder or GGUF file, or make token files with "
                        "another program",
                        g->path, metadata_name(g, needed[i]));
    return 0;
}

/* Refuse a flag that makes llama.cpp add the end token behind prompts, too. */
static int check_end(const struct metadata *m)
{
    bool ends;
    const int rc = gguf_bool(m->g, KEY("add_eos_token"), false, &ends);
    if (rc != 0 || !ends)
        return rc;
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s is true, and texts that end with eos_token_id, prompts too, are not "
                "supported; use the model's Hugging Face folder, or make token files with another "
                "program",
                m->g->path, metadata_name(m->g, KEY("add_eos_token")));
}

static int read_metadata(struct metadata *m)
{
    TRY(check_apr(m->g));
    TRY(read_kind(m));
    TRY(read_lists(m));
    TRY(read_id(m, KEY("bos_token_id"), &m->bos));
    TRY(read_id(m, KEY("eos_token_id"), &m->eos));
    TRY(read_id(m, KEY("padding_token_id"), &m->padding));
    TRY(gguf_bool(m->g, KEY("add_bos_token"), m->begins, &m->begins));
    TRY(check_end(m));
    if (m->begins && m->bos < 0)
        return fail(NJ_E_FORMAT, "%s: texts begin with a token, and %s is missing; " AGAIN,
                    m->g->path, metadata_name(m->g, KEY("bos_token_id")));
    return 0;
}

/* ---- tokens and merges ---- */

/* Return whether a token that is searched for has the spaces of texts, where merges have U+2581
 * for them. */
static bool has_spaces(const struct metadata *m, size_t id)
{
    const struct gguf_text *t = &m->token[id];
    return !m->pre && !m->scored && !m->prefix && m->type[id] == USER_DEFINED &&
           memchr(t->text, ' ', t->bytes);
}

/* Copy the text of a token as a tokenizer.json has it; NULL if memory runs out. */
static char *copy_token(const struct metadata *m, size_t id)
{
    const struct gguf_text *t = &m->token[id];
    if (!has_spaces(m, id))
        return strndup(t->text, t->bytes);
    char *text = malloc(SPACE_BYTES * t->bytes + 1);
    if (text)
        text[spaces_spell(t->text, t->bytes, text)] = '\0';
    return text;
}

static int put_token(struct metadata *m, size_t id, const char *text)
{
    const json_t *same = json_object_get(m->vocab, text);
    const int32_t type = m->type[id];
    if (same)
        return fail(NJ_E_FORMAT, "%s: tokens %lld and %zu are both '%.64s'; " AGAIN, m->g->path,
                    (long long)json_integer_value(same), id, text);
    json_object_set_new(m->vocab, text, json_integer((json_int_t)id));
    if (type == NORMAL || type == BYTE)
        return 0;
    json_array_append_new(m->added, json_pack("{s:I,s:s,s:b,s:b,s:b,s:b,s:b}", "id", (json_int_t)id,
                                              "content", text, "single_word", 0, "lstrip", 0,
                                              "rstrip", 0, "normalized", has_spaces(m, id),
                                              "special", type != USER_DEFINED));
    return 0;
}

static int put_tokens(struct metadata *m)
{
    int rc = 0;
    for (size_t id = 0; id < m->tokens && rc == 0; id++) {
        if (m->type[id] < NORMAL || m->type[id] > BYTE)
            return fail(NJ_E_FORMAT, "%s: %s is %d for token %zu; 1 to 6 are known: " AGAIN,
                        m->g->path, metadata_name(m->g, KEY("token_type")), (int)m->type[id], id);
        if (is_absent(m, id))
            continue;
        if (!unicode_is_text(m->token[id].text, m->token[id].bytes))
            return fail(NJ_E_FORMAT, "%s: token %zu is not UTF-8 text; " AGAIN, m->g->path, id);
        char *text = copy_token(m, id);
        if (!text)
            return fail(NJ_E_NOMEM, "%s: out of memory for its tokens", m->g->path);
        rc = put_token(m, id, text);
        free(text);
    }
    return rc;
}

static int put_joins(struct metadata *m)
{
    bool *normal = calloc(m->tokens + 1, sizeof *normal);
    if (!normal)
        return fail(NJ_E_NOMEM, "%s: out of memory for its tokens", m->g->path);
    for (size_t i = 0; i < m->tokens; i++)
        normal[i] = m->type[i] == NORMAL;
    const int rc = gguf_scores_merges(m->g, m->vocab, normal, m->tokens, m->list);
    free(normal);
    return rc;
}

static int put_merges(struct metadata *m)
{
    for (size_t i = 0; i < m->merges; i++) {
        if (!unicode_is_text(m->merge[i].text, m->merge[i].bytes))
            return fail(NJ_E_FORMAT, "%s: merge %zu is not UTF-8 text; " AGAIN, m->g->path, i);
        json_array_append_new(m->list, json_stringn(m->merge[i].text, m->merge[i].bytes));
    }
    return 0;
}

/* ---- the other parts of a tokenizer.json ---- */

static json_t *byte_level(bool regex)
{
    return json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", regex);
}

static json_t *sequence(const char *name, json_t *list)
{
    json_t *out = json_pack("{s:s}", "type", "Sequence");
    json_object_set_new(out, name, list);
    return out;
}

static json_t *pre_tokenizer(const struct gguf_pre *pre)
{
    if (!pre)
        return json_null();
    json_t *list = json_array();
    if (pre->digits)
        json_array_append_new(list,
                              json_pack("{s:s,s:b}", "type", "Digits", "individual_digits", 1));
    for (int i = 0; i < PRE_PATTERNS_MOST && pre->pattern[i]; i++)
        json_array_append_new(list, json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern",
                                              "Regex", pre->pattern[i], "behavior", "Isolated",
                                              "invert", 0));
    json_array_append_new(list, byte_level(!pre->pattern[0]));
    return sequence("pretokenizers", list);
}

/* Return the text of a token as JSON, if the token exists. */
static json_t *token_text(const struct metadata *m, int64_t id)
{
    return json_stringn(m->token[id].text, m->token[id].bytes);
}

static json_t *post_processor(const struct metadata *m)
{
    if (!m->begins)
        return m->pre ? byte_level(true) : json_null();
    json_t *text = token_text(m, m->bos), *list = json_array(), *tokens = json_object();
    const char *bos = json_string_value(text) ? json_string_value(text) : "";
    json_object_set_new(
        tokens, bos,
        json_pack("{s:s,s:[I],s:[s]}", "id", bos, "ids", (json_int_t)m->bos, "tokens", bos));
    if (m->pre)
        json_array_append_new(list, byte_level(true));
    json_array_append_new(
        list,
        json_pack("{s:s,s:[{s:{s:s,s:i}},{s:{s:s,s:i}}],"
                  "s:[{s:{s:s,s:i}},{s:{s:s,s:i}},{s:{s:s,s:i}},{s:{s:s,s:i}}],s:O}",
                  "type", "TemplateProcessing", "single", "SpecialToken", "id", bos, "type_id", 0,
                  "Sequence", "id", "A", "type_id", 0, "pair", "SpecialToken", "id", bos, "type_id",
                  0, "Sequence", "id", "A", "type_id", 0, "SpecialToken", "id", bos, "type_id", 1,
                  "Sequence", "id", "B", "type_id", 1, "special_tokens", tokens));
    json_decref(tokens);
    json_decref(text);
    return sequence("processors", list);
}

static json_t *normalizer(const struct metadata *m)
{
    if (!m->pre)
        return gguf_scores_normalizer(m->prefix);
    return m->pre->nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
}

static int put_root(struct metadata *m)
{
    json_t *model =
        json_pack("{s:s,s:n,s:n,s:n,s:n,s:b,s:b,s:b}", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", !m->pre,
                  "byte_fallback", !m->pre, "ignore_merges", m->pre && m->pre->ignore_merges);
    json_object_set_new(model, "vocab", m->vocab = json_object());
    json_object_set_new(model, "merges", m->list = json_array());
    m->root = json_pack("{s:s,s:n,s:n}", "version", "1.0", "truncation", "padding");
    json_object_set_new(m->root, "added_tokens", m->added = json_array());
    json_object_set_new(m->root, "normalizer", normalizer(m));
    json_object_set_new(m->root, "pre_tokenizer", pre_tokenizer(m->pre));
    json_object_set_new(m->root, "post_processor", post_processor(m));
    json_object_set_new(m->root, "decoder",
                        m->pre ? byte_level(true) : gguf_scores_decoder(m->prefix));
    const int failed = json_object_set_new(m->root, "model", model);
    return failed ? fail(NJ_E_NOMEM, "%s: out of memory for its tokenizer", m->g->path) : 0;
}

/* ---- tokenizer_config.json ---- */

static int put_config(const struct metadata *m, json_t **out)
{
    const struct {
        const char *name;
        int64_t id;
    } tokens[] = {{"bos_token", m->bos}, {"eos_token", m->eos}, {"pad_token", m->padding}};
    struct gguf_text chat;
    TRY(gguf_string(m->g, "tokenizer.chat_template", &chat));
    *out = json_pack("{s:s,s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                     "clean_up_tokenization_spaces", 0);
    /* transformers makes each token named here special, so ordinary tokens are left out. */
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        if (tokens[i].id >= 0 && m->type[tokens[i].id] != NORMAL)
            json_object_set_new(*out, tokens[i].name, token_text(m, tokens[i].id));
    if (chat.text &&
        json_object_set_new(*out, "chat_template", json_text(chat.text, chat.bytes)) != 0)
        return fail(NJ_E_NOMEM, "%s: out of memory for its chat template", m->g->path);
    return 0;
}

/* ---- the tokenizer.json ---- */

/* Return the size of the texts in the file, to which allocations stay proportional. */
static size_t text_bytes(const struct metadata *m)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->tokens; i++)
        bytes += m->token[i].bytes + 12;
    for (size_t i = 0; i < m->merges; i++)
        bytes += m->merge[i].bytes + 8;
    return bytes;
}

static int build(struct metadata *m, json_t **config)
{
    json_memory_limit(text_bytes(m));
    int rc = put_root(m);
    if (rc == 0)
        rc = put_tokens(m);
    if (rc == 0)
        rc = m->scored ? put_joins(m) : put_merges(m);
    if (rc == 0)
        rc = put_config(m, config);
    const bool spent = json_memory_spent();
    if (!json_memory_end() || (rc != 0 && rc != NJ_E_NOMEM))
        return rc;
    return spent ? fail(NJ_E_FORMAT, "%s: its tokenizer needs too much memory; " AGAIN, m->g->path)
                 : fail(NJ_E_NOMEM, "%s: out of memory for its tokenizer", m->g->path);
}

static int to_json(struct metadata *m, json_t **tokenizer, json_t **config)
{
    int rc = read_metadata(m);
    if (rc == 0)
        rc = build(m, config);
    free(m->token);
    free(m->type);
    free(m->merge);
    if (rc != 0) {
        json_decref(m->root);
        json_decref(*config);
        m->root = *config = NULL;
    }
    *tokenizer = m->root;
    return rc;
}

int gguf_tokenizer_json(const struct gguf *g, json_t **tokenizer, json_t **config)
{
    struct metadata m = {.g = g};
    *config = NULL;
    return to_json(&m, tokenizer, config);
}

int gguf_tokenizer_read(const struct gguf *g, struct bpe **out, int *eos)
{
    struct metadata m = {.g = g};
    json_t *tokenizer, *config = NULL;
    char name[PATH_BYTES + 32];
    *out = NULL;
    int rc = to_json(&m, &tokenizer, &config);
    *eos = rc != 0 ? -1 : (int)m.eos;
    snprintf(name, sizeof name, "%s (%s)", g->path, g->apr ? "tokenizer" : "tokenizer.ggml");
    if (rc == 0)
        rc = bpe_from(name, tokenizer, out);
    if (rc == 0 && m.scored)
        rc = gguf_scores_rank(g, *out);
    json_decref(tokenizer);
    json_decref(config);
    return rc;
}

/* ---- files of a folder ---- */

static int dump(json_t *root, const char *dir, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    json_memory_begin();
    return json_write_file(path, json_incref(root), JSON_COMPACT);
}

/* Copy the tokenizer to dir; if dir is NULL, only check it. */
static int copy(const char *path, const char *dir)
{
    json_t *tokenizer = NULL, *config = NULL;
    struct gguf g;
    struct bpe *bpe = NULL;
    int eos;
    int rc = metadata_open(path, &g);
    if (rc != 0)
        return rc;
    if (gguf_tokenizer_is(&g) && !dir)
        rc = gguf_tokenizer_read(&g, &bpe, &eos);
    if (gguf_tokenizer_is(&g) && dir)
        rc = gguf_tokenizer_json(&g, &tokenizer, &config);
    if (rc == 0 && tokenizer)
        rc = dump(tokenizer, dir, "tokenizer.json");
    if (rc == 0 && config)
        rc = dump(config, dir, "tokenizer_config.json");
    bpe_free(bpe);
    json_decref(tokenizer);
    json_decref(config);
    gguf_close(&g);
    return rc;
}

int gguf_tokenizer_copy(const char *path, const char *dir)
{
    return copy(path, dir);
}

int gguf_tokenizer_check(const char *path)
{
    return copy(path, NULL);
}

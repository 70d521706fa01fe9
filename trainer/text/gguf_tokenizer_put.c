/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_tokenizer_put.c: a model's tokenizer as metadata of a GGUF file.
 */
#include "io/error.h"
#include "io/json_text.h"
#include "text/bpe.h"
#include "text/bpe_spaces.h"
#include "text/byte_alphabet.h"
#include "text/chat.h"
#include "text/generation.h"
#include "text/gguf_pre.h"
#include "text/gguf_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };
enum { PADDING_BYTES = 24, SPELLED_BYTES = SPACE_BYTES /* most bytes of the spelling of one */ };

/* Texts of a list of strings, stored in sequence in one block. */
struct texts {
    struct gguf_text *text;
    size_t count;
    char *block;
    size_t used;
};

static int make_texts(struct texts *t, size_t count, size_t bytes)
{
    *t = (struct texts){.text = calloc(count + 1, sizeof *t->text), .block = malloc(bytes + 1)};
    return t->text && t->block ? 0 : fail(NJ_E_NOMEM, "out of memory for a tokenizer");
}

static void free_texts(struct texts *t)
{
    free(t->text);
    free(t->block);
}

/* End the next text, which was written to the block after `used`. */
static void end_text(struct texts *t, size_t bytes)
{
    t->text[t->count++] = (struct gguf_text){t->block + t->used, bytes};
    t->used += bytes;
}

/* ---- tokens ---- */

static bool between(const char *text, size_t bytes, const char *first, const char *last)
{
    const size_t a = strlen(first), b = strlen(last);
    return bytes >= a + b && memcmp(text, first, a) == 0 && memcmp(text + bytes - b, last, b) == 0;
}

/* Return whether the converter takes an added token for a special one because of its form. */
static bool looks_special(const char *text, size_t bytes)
{
    static const char *const looks[][2] = {{"<|", "|>"},     {"<\xef\xbd\x9c", "\xef\xbd\x9c>"},
                                           {"<unused", ">"}, {"<pad>", ""},
                                           {"<mask>", ""},   {"<2mass>", ""},
                                           {"[@BOS@]", ""}};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (between(text, bytes, looks[i][0], looks[i][1]) &&
            (looks[i][1][0] || bytes == strlen(looks[i][0])))
            return true;
    return false;
}

/* Spell bytes as the vocabulary does; return the length. */
static size_t spell(const struct bpe *b, const struct alphabet *a, const char *text, size_t bytes,
                    char *out)
{
    return b && b->spaces ? spaces_spell(text, bytes, out) : alphabet_spell(a, text, bytes, out);
}

/* Return whether the token is that of a byte, beside those of code points. */
static bool is_byte(const struct bpe *b, int32_t id, const char *text, size_t bytes)
{
    return b && b->spaces && b->falls_back && bytes == 1 && b->of_byte[(unsigned char)*text] == id;
}

/* Return whether an added token with spaces is one of the vocabulary, too. Merges make it, and
 * llama.cpp, which knows an added token by its spaces, would not let them. */
static bool is_run(const struct bpe *b, int32_t id, const char *text, size_t bytes)
{
    return b->spaces && !b->special[id] && memchr(text, ' ', bytes) &&
           bpe_find(b, text, bytes) == id;
}

/* Append a token to the texts; return its type. Tokens that no text contains are written
 * unchanged. */
static int32_t put_token(const struct tokenizer *t, const struct alphabet *a, int32_t id,
                         struct texts *out)
{
    bool special;
    size_t bytes;
    char *to = out->block + out->used;
    const char *text = tokenizer_token(t, id, &bytes, &special);
    if (!text) {
        end_text(out, (size_t)snprintf(to, PADDING_BYTES, "[PAD%d]", id));
        return UNUSED;
    }
    const bool added = t->bpe ? t->bpe->added[id] && !is_run(t->bpe, id, text, bytes) : special;
    if (!added && is_byte(t->bpe, id, text, bytes)) {
        end_text(out, (size_t)snprintf(to, PADDING_BYTES, "<0x%02X>", (unsigned char)*text));
        return BYTE;
    }
    if (!added && (!t->bpe || bpe_find(t->bpe, text, bytes) == id)) {
        end_text(out, spell(t->bpe, a, text, bytes, to));
        return NORMAL;
    }
    memcpy(to, text, bytes);
    end_text(out, bytes);
    return !added ? NORMAL : special || looks_special(text, bytes) ? CONTROL : USER_DEFINED;
}

static int put_tokens(struct gguf_writer *w, const struct tokenizer *t, const struct alphabet *a,
                      int vocab_size)
{
    struct texts texts;
    size_t total = 0, bytes;
    bool special;
    for (int32_t id = 0; id < vocab_size; id++) {
        (void)tokenizer_token(t, id, &bytes, &special);
        total += SPELLED_BYTES * bytes + PADDING_BYTES;
    }
    int32_t *types = calloc((size_t)vocab_size + 1, sizeof *types);
    int rc = make_texts(&texts, (size_t)vocab_size, total);
    if (!types)
        rc = fail(NJ_E_NOMEM, "out of memory for a tokenizer");
    for (int32_t id = 0; id < vocab_size && rc == 0; id++)
        types[id] = put_token(t, a, id, &texts);
    if (rc == 0) {
        gguf_put_strings(w, KEY("tokens"), texts.text, texts.count);
        gguf_put_i32s(w, KEY("token_type"), types, (size_t)vocab_size);
    }
    free(types);
    free_texts(&texts);
    return rc;
}

/* ---- merges ---- */

static int by_rank(const void *a, const void *b)
{
    const struct bpe_merge *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static size_t token_bytes(const struct bpe *b, int32_t id)
{
    return b->start[id + 1] - b->start[id];
}

static void put_merge(const struct bpe *b, const struct alphabet *a, const struct bpe_merge *m,
                      struct texts *out)
{
    char *to = out->block + out->used;
    size_t n = spell(b, a, b->text + b->start[m->left], token_bytes(b, m->left), to);
    to[n++] = ' ';
    n += spell(b, a, b->text + b->start[m->right], token_bytes(b, m->right), to + n);
    end_text(out, n);
}

/* Return the merges of the table, in the order of their ranks; the caller frees them. */
static struct bpe_merge *list_merges(const struct bpe *b, size_t *count, size_t *bytes)
{
    *count = *bytes = 0;
    for (size_t i = 0; i < b->merge_slots; i++)
        *count += b->merge[i].left >= 0;
    struct bpe_merge *list = calloc(*count + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < b->merge_slots && list; i++) {
        const struct bpe_merge *m = &b->merge[i];
        if (m->left < 0)
            continue;
        list[n++] = *m;
        *bytes += SPELLED_BYTES * (token_bytes(b, m->left) + token_bytes(b, m->right)) + 1;
    }
    if (list)
        qsort(list, n, sizeof *list, by_rank);
    return list;
}

static int put_merges(struct gguf_writer *w, const struct bpe *b, const struct alphabet *a)
{
    struct texts texts = {0};
    size_t count, bytes;
    struct bpe_merge *list = list_merges(b, &count, &bytes);
    int rc = list ? make_texts(&texts, count, bytes)
                  : fail(NJ_E_NOMEM, "out of memory for %zu merges", count);
    for (size_t i = 0; i < count && rc == 0; i++)
        put_merge(b, a, &list[i], &texts);
    if (rc == 0)
        gguf_put_strings(w, KEY("merges"), texts.text, count);
    free(list);
    free_texts(&texts);
    return rc;
}

/* ---- ids and chat template ---- */

/* tokenizer_config.json and config.json of the model; NULL if absent. */
struct configs {
    json_t *tokenizer, *model;
};

static int read_configs(const char *dir, struct configs *c)
{
    char path[PATH_BYTES + 32];
    struct gguf g;
    json_t *json;
    *c = (struct configs){0};
    if (gguf_is(dir)) {
        int rc = gguf_open(dir, &g);
        if (rc != 0)
            return rc;
        if (gguf_tokenizer_is(&g))
            rc = gguf_tokenizer_json(&g, &json, &c->tokenizer);
        if (rc == 0 && c->tokenizer)
            json_decref(json);
        gguf_close(&g);
        return rc;
    }
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    TRY(json_read_optional(path, "fetch the model again", &c->tokenizer));
    snprintf(path, sizeof path, "%s/config.json", dir);
    return json_read_optional(path, "fetch the model again", &c->model);
}

/* Return the id of bos, eos or pad: by the text in tokenizer_config.json, else by the id in
 * config.json; -1 if there is none. */
static int32_t special_id(const struct tokenizer *t, const struct configs *c, const char *name,
                          int vocab_size)
{
    char key[32];
    snprintf(key, sizeof key, "%s_token", name);
    const json_t *token = json_object_get(c->tokenizer, key);
    const json_t *content = json_is_object(token) ? json_object_get(token, "content") : token;
    if (json_is_string(content)) {
        const int32_t id = tokenizer_added(t, json_string_value(content));
        if (id >= 0)
            return id;
    }
    snprintf(key, sizeof key, "%s_token_id", name);
    const json_t *id = json_object_get(c->model, key);
    id = json_is_array(id) ? json_array_get(id, 0) : id;
    const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    size_t bytes;
    bool special;
    const bool is_token = value >= 0 && value < vocab_size &&
                          tokenizer_token(t, (int32_t)value, &bytes, &special) != NULL;
    return is_token ? (int32_t)value : -1;
}

static void put_id(struct gguf_writer *w, const char *key, int32_t id)
{
    if (id >= 0)
        gguf_put_u32(w, key, (uint32_t)id);
}

/* Return the id in generation_config.json that ends a turn and is not eos; -1 if there is none. */
static int32_t turn_id(const struct generation *g, const struct tokenizer *t, int32_t eos)
{
    int32_t found = -1;
    for (int i = g->stops - 1; i >= 0; i--)
        if (g->stop[i] != eos && g->stop[i] != t->end_of_text)
            found = g->stop[i];
    if (t->end_of_turn >= 0 && generation_stops(g, t->end_of_turn))
        found = t->end_of_turn;
    return found == eos || t->end_of_turn == eos ? -1 : found;
}

static int put_ids(struct gguf_writer *w, const struct tokenizer *t, int vocab_size)
{
    struct generation ends;
    struct configs c;
    const int32_t begin = tokenizer_begin_of_text(t);
    int rc = read_configs(t->dir, &c);
    if (rc == 0)
        rc = generation_said(t->dir, vocab_size, &ends);
    if (rc == 0) {
        const int32_t found = special_id(t, &c, "eos", vocab_size);
        const int32_t eos = found >= 0 ? found : t->end_of_text;
        put_id(w, KEY("bos_token_id"), begin >= 0 ? begin : special_id(t, &c, "bos", vocab_size));
        put_id(w, KEY("eos_token_id"), eos);
        put_id(w, KEY("eot_token_id"), turn_id(&ends, t, eos));
        put_id(w, KEY("padding_token_id"), special_id(t, &c, "pad", vocab_size));
        gguf_put_bool(w, KEY("add_bos_token"), begin >= 0);
    }
    json_decref(c.tokenizer);
    json_decref(c.model);
    return rc;
}

static int put_template(struct gguf_writer *w, const char *dir)
{
    json_t *json;
    const json_t *each;
    size_t i;
    const int rc = chat_template(dir, &json);
    const char *text = json_string_value(json);
    json_array_foreach(json, i, each)
    {
        const char *name = json_string_value(json_object_get(each, "name"));
        if (name && strcmp(name, "default") == 0)
            text = json_string_value(json_object_get(each, "template"));
    }
    if (text)
        gguf_put_string(w, "tokenizer.chat_template", text);
    json_decref(json);
    return rc;
}

/* ---- the tokenizer ---- */

/* Return whether a merge joins line breaks with other characters: llama.cpp never does. */
static bool merges_lines(const struct bpe *b)
{
    bool found = false;
    for (size_t i = 0; i < b->merge_slots && !found; i++) {
        const struct bpe_merge *m = &b->merge[i];
        const size_t bytes = m->left < 0 ? 0 : token_bytes(b, m->id);
        const char *text = b->text + (bytes > 0 ? b->start[m->id] : 0);
        size_t breaks = 0;
        for (size_t k = 0; k < bytes; k++)
            breaks += text[k] == '\n';
        found = breaks > 0 && breaks < bytes;
    }
    return found;
}

/* Return whether texts are cut as those of the vocabulary that llama.cpp calls gemma4: U+2581
 * stands for spaces, and nothing is put before a text. */
static bool cuts_like_gemma(const struct bpe *b)
{
    const bool whole = b->stages == 0 || (b->stages == 1 && b->stage[0].kind == SPLIT_SPACES);
    return b->spaces && b->early && b->prefix == PREFIX_NEVER && b->falls_back &&
           !b->ignore_merges && whole && !merges_lines(b);
}

/* Find the name of the pre-tokenizer; without merges each byte is a token with any of them, and
 * gemma4 needs none. */
static int find_pre(const struct tokenizer *t, const char **name)
{
    char names[PRE_LIST_BYTES];
    *name = "gpt-2";
    if (!t->bpe || cuts_like_gemma(t->bpe))
        return 0;
    const struct gguf_pre *pre = gguf_pre_of(t->bpe);
    if (!pre)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: its tokenizer cuts texts as none of llama.cpp's pre-tokenizers %s does; "
                    "use llama.cpp's converter",
                    t->dir, gguf_pre_names(names, sizeof names));
    *name = pre->name[0];
    return 0;
}

int gguf_check_tokenizer(const struct tokenizer *t, int vocab_size)
{
    const char *pre;
    if (t->vocab_size == 0)
        return fail(NJ_E_UNSUPPORTED, "%s", t->refusal);
    if (t->vocab_size > vocab_size)
        return fail(NJ_E_FORMAT,
                    "%s: its tokenizer has %d tokens, the model %d; use the tokenizer that the "
                    "model was trained with",
                    t->dir, t->vocab_size, vocab_size);
    return find_pre(t, &pre);
}

int gguf_put_tokenizer(struct gguf_writer *w, const struct tokenizer *t, int vocab_size)
{
    struct alphabet a;
    const char *pre = NULL;
    int rc = gguf_check_tokenizer(t, vocab_size);
    if (rc == 0)
        rc = find_pre(t, &pre);
    if (rc != 0)
        return rc;
    alphabet_make(&a);
    const bool spaces = t->bpe && t->bpe->spaces;
    gguf_put_string(w, KEY("model"), spaces ? "gemma4" : "gpt2");
    if (spaces)
        gguf_put_bool(w, KEY("add_space_prefix"), false);
    else
        gguf_put_string(w, KEY("pre"), pre);
    rc = put_tokens(w, t, &a, vocab_size);
    if (rc == 0 && t->bpe)
        rc = put_merges(w, t->bpe, &a);
    else if (rc == 0)
        gguf_put_strings(w, KEY("merges"), NULL, 0);
    if (rc == 0)
        rc = put_ids(w, t, vocab_size);
    return rc != 0 ? rc : put_template(w, t->dir);
}

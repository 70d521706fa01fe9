/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_read.c: tokenizer.json to struct bpe: the model and the added tokens. A feature of a file
 * that is not supported is refused by field and value, never guessed. `truncation` and `padding`
 * are settings of calls and are ignored.
 */
#include "text/bpe_read.h"

#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "text/added_config.h"
#include "text/bpe_spaces.h"
#include "text/byte_alphabet.h"
#include "text/unicode.h"
#include "text/vocab_files.h"

#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static int no_memory(const struct reading *r)
{
    return fail(NJ_E_NOMEM, "%s: out of memory", r->path);
}

/* ---- tokens ---- */

/* Source of the text of an id while the table is made. */
struct source {
    const char *text; /* text of the token; NULL: no token has the id */
    size_t bytes;
    bool added, special;
};

static int take_id(const struct reading *r, const char *name, const json_t *id, int32_t *out)
{
    const json_int_t value = json_integer_value(id);
    *out = 0;
    if (!json_is_integer(id) || value < 0 || value >= 1 << 24)
        return bpe_refuse(r, name, id, "an id must be a whole number below 16,777,216");
    *out = (int32_t)value;
    return 0;
}

/* Give an added token its id in r->added: not the file's but, as the `tokenizers` library does,
 * that of the vocabulary or else the next after the number of ids in the vocabulary. If a text
 * occurs again, the last entry counts. */
static int number_added(struct reading *r, json_t *vocab, json_t *entry)
{
    json_t *content = json_object_get(entry, "content");
    int32_t id;
    TRY(take_id(r, "added_tokens.id", json_object_get(entry, "id"), &id));
    if (!json_is_string(content))
        return bpe_refuse(r, "added_tokens.content", content, "it must be a text");
    if (json_string_length(content) == 0)
        return 0;
    const char *text = json_string_value(content);
    const json_t *same = json_object_get(r->added, text), *known = json_object_get(vocab, text);
    if (same)
        id = (int32_t)json_integer_value(json_array_get(same, 0));
    else if (known)
        id = (int32_t)json_integer_value(known);
    else
        id = (int32_t)(json_object_size(vocab) + r->new_ids++);
    json_t *pair = json_pack("[iO]", (int)id, entry);
    if (!pair || json_object_set_new(r->added, text, pair))
        return no_memory(r);
    r->bpe->ids = id >= r->bpe->ids ? id + 1 : r->bpe->ids;
    return 0;
}

static int count_ids(struct reading *r, json_t *vocab, const json_t *added)
{
    const char *text;
    json_t *id;
    size_t i;
    int32_t value;
    json_object_foreach(vocab, text, id)
    {
        int rc = take_id(r, text, id, &value);
        if (rc != 0)
            return rc;
        r->bpe->ids = value >= r->bpe->ids ? value + 1 : r->bpe->ids;
    }
    json_array_foreach(added, i, id)
    {
        int rc = number_added(r, vocab, id);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int refuse_length(const struct reading *r, json_t *content)
{
    return bpe_refuse(r, "added_tokens.content", content, "at most 256 bytes are supported");
}

/* Return the text by which an added token is found, which the normalizer may change; NULL if
 * memory runs out. */
static char *searched_text(const struct bpe *b, const char *text, size_t *bytes, bool normalized)
{
    char *out = NULL;
    if (normalized && unicode_normalize(b->form, text, *bytes, &out, bytes, &(size_t){0}) != 0)
        return out;
    const bool early = normalized && b->early;
    const bool prefix =
        early && (b->prefix == PREFIX_EACH || (b->doubled && spaces_begin(text, *bytes)));
    out = malloc(*bytes + 2);
    if (!out)
        return NULL;
    out[0] = ' ';
    if (early)
        *bytes = spaces_fold(text, *bytes, out + prefix) + prefix;
    else
        memcpy(out, text, *bytes);
    out[*bytes] = '\0';
    return out;
}

static int add_token(struct reading *r, struct source *source, int32_t id, json_t *entry)
{
    json_t *content = json_object_get(entry, "content");
    const bool normalized = json_is_true(json_object_get(entry, "normalized"));
    struct added_set *set = normalized ? &r->bpe->normalized : &r->bpe->raw;
    struct added_token *more = realloc(set->token, (set->count + 1) * sizeof *more);
    if (!more)
        return no_memory(r);
    set->token = more;
    struct added_token *t = &set->token[set->count];
    *t = (struct added_token){
        .bytes = json_string_length(content),
        .id = id,
        .special = json_is_true(json_object_get(entry, "special")),
        .normalized = normalized,
        .single_word = json_is_true(json_object_get(entry, "single_word")),
        .lstrip = json_is_true(json_object_get(entry, "lstrip")),
        .rstrip = json_is_true(json_object_get(entry, "rstrip")),
    };
    if (!(t->text = searched_text(r->bpe, json_string_value(content), &t->bytes, normalized)))
        return no_memory(r);
    set->count++;
    if (t->bytes > ADDED_BYTES_MOST)
        return refuse_length(r, content);
    source[id] =
        (struct source){json_string_value(content), json_string_length(content), true, t->special};
    return 0;
}

/* Write the bytes that a token of the vocabulary stands for to out; -1: it occurs in no text. */
static long bytes_of(const struct reading *r, const struct alphabet *a, const char *text,
                     size_t bytes, char *out)
{
    if (!r->bpe->spaces)
        return alphabet_bytes(a, text, bytes, out);
    const int byte = r->bpe->falls_back ? spaces_byte(text, bytes) : -1;
    if (byte < 0)
        return spaces_bytes(text, bytes, out);
    *out = (char)byte;
    return 1;
}

/* Write the bytes that a token of the table stands for to out; -1: those that the file has. An
 * added token that is not special has spaces for U+2581, as decoders write them. */
static long bytes_shown(const struct reading *r, const struct alphabet *a, const struct source *s,
                        char *out)
{
    if (!s->added)
        return bytes_of(r, a, s->text, s->bytes, out);
    return r->bpe->spaces && !s->special ? (long)spaces_fold(s->text, s->bytes, out) : -1;
}

/* Fill text, start, present and special from the sources. */
static int build_table(struct reading *r, const struct alphabet *a, const struct source *source)
{
    struct bpe *b = r->bpe;
    const size_t ids = (uint32_t)b->ids;
    size_t total = 0;
    for (int32_t i = 0; i < b->ids; i++)
        total += source[i].bytes;
    b->text = malloc(total + 1);
    b->start = malloc((ids + 1) * sizeof *b->start);
    b->present = calloc(ids, 1);
    b->special = calloc(ids, 1);
    b->added = calloc(ids, 1);
    if (!b->text || !b->start || !b->present || !b->special || !b->added)
        return no_memory(r);
    size_t at = 0;
    for (int32_t i = 0; i < b->ids; i++) {
        const struct source *s = &source[i];
        b->start[i] = at;
        b->present[i] = s->text != NULL;
        b->special[i] = s->special;
        b->added[i] = s->added;
        if (!s->text)
            continue;
        const long n = bytes_shown(r, a, s, b->text + at);
        if (n < 0)
            memcpy(b->text + at, s->text, s->bytes);
        at += n < 0 ? s->bytes : (size_t)n;
    }
    b->start[b->ids] = at;
    return 0;
}

/* Read the token of bytes that have none of their own. */
static int read_unknown(struct reading *r, const json_t *vocab)
{
    const json_t *model = json_object_get(r->root, "model");
    const json_t *name = json_object_get(model, "unk_token");
    r->bpe->unknown = -1;
    if (r->bpe->missing_bytes == 0 || !json_is_string(name))
        return 0;
    const json_t *id = json_object_get(vocab, json_string_value(name));
    if (!id)
        return bpe_refuse(r, "model.unk_token", name, "it must be a token of model.vocab");
    r->bpe->unknown = (int32_t)json_integer_value(id);
    r->bpe->fuse_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    return 0;
}

/* Check that a tokenizer whose symbols are code points has tokens for all bytes, or one for unknown characters. */
static int check_bytes(struct reading *r, const json_t *vocab)
{
    struct bpe *b = r->bpe;
    if (b->falls_back && b->missing_bytes > 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: model.byte_fallback is true, and %d of the 256 bytes have no token; make "
                    "token files with another program",
                    r->path, b->missing_bytes);
    const int rc = b->falls_back ? 0 : read_unknown(r, vocab);
    b->missing_bytes = 0;
    return rc;
}

/* Build the hash table of the vocabulary; tokens beyond the alphabet occur in no text. */
static int index_vocabulary(struct reading *r, const struct alphabet *a, json_t *vocab)
{
    struct bpe *b = r->bpe;
    const char *text;
    json_t *id;
    char *bytes = malloc(r->longest + 1);
    for (b->by_text_slots = 1024; b->by_text_slots < 2 * json_object_size(vocab);)
        b->by_text_slots *= 2;
    b->by_text = malloc(b->by_text_slots * sizeof *b->by_text);
    if (!bytes || !b->by_text) {
        free(bytes);
        return no_memory(r);
    }
    memset(b->by_text, 0xff, b->by_text_slots * sizeof *b->by_text);
    memset(b->of_byte, 0xff, sizeof b->of_byte);
    json_object_foreach(vocab, text, id)
    {
        const int32_t value = (int32_t)json_integer_value(id);
        const long n = bytes_of(r, a, text, strlen(text), bytes);
        const bool byte = b->falls_back && spaces_byte(text, strlen(text)) >= 0;
        if (byte)
            b->of_byte[(unsigned char)bytes[0]] = value;
        if (n < 0 || byte)
            continue;
        size_t i = bpe_slot(b, bytes, (size_t)n);
        while (b->by_text[i] >= 0)
            i = (i + 1) & (b->by_text_slots - 1);
        b->by_text[i] = value;
        if (n == 1 && !b->spaces)
            b->of_byte[(unsigned char)bytes[0]] = value;
    }
    free(bytes);
    for (int c = 0; c < 256; c++)
        b->missing_bytes += b->of_byte[c] < 0;
    if (b->spaces)
        return check_bytes(r, vocab);
    if (b->missing_bytes == 256)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: no token stands for a byte, so it is not byte-level BPE; make token files "
                    "with another program",
                    r->path);
    return read_unknown(r, vocab);
}

static int read_tokens(struct reading *r, const struct alphabet *a, json_t *vocab)
{
    const json_t *added = json_object_get(r->root, "added_tokens");
    const char *text;
    json_t *entry;
    int rc = (r->added = json_object()) ? count_ids(r, vocab, added) : no_memory(r);
    if (rc != 0)
        return rc;
    struct source *source = calloc((size_t)r->bpe->ids + 1, sizeof *source);
    if (!source)
        return no_memory(r);
    json_object_foreach(vocab, text, entry)
    {
        const size_t bytes = strlen(text);
        source[json_integer_value(entry)] = (struct source){text, bytes, false, false};
        r->longest = bytes > r->longest ? bytes : r->longest;
    }
    json_object_foreach(r->added, text, entry)
    {
        const json_int_t id = json_integer_value(json_array_get(entry, 0));
        rc = add_token(r, source, (int32_t)id, json_array_get(entry, 1));
        if (rc != 0)
            break;
    }
    if (rc == 0)
        rc = build_table(r, a, source);
    free(source);
    if (rc == 0)
        rc = index_vocabulary(r, a, vocab);
    added_prepare(&r->bpe->raw);
    added_prepare(&r->bpe->normalized);
    return rc;
}

/* ---- merges ---- */

/* Split a merge, which is "left right" or ["left", "right"]. */
static bool merge_parts(const json_t *merge, const char *part[2], size_t bytes[2])
{
    if (json_is_string(merge)) {
        part[0] = json_string_value(merge);
        const char *space = strchr(part[0], ' ');
        if (!space)
            return false;
        bytes[0] = (size_t)(space - part[0]);
        part[1] = space + 1;
        bytes[1] = strlen(part[1]);
        return strchr(part[1], ' ') == NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_array_get(merge, i);
        if (!json_is_string(value))
            return false;
        part[i] = json_string_value(value);
        bytes[i] = json_string_length(value);
    }
    return json_array_size(merge) == 2;
}

static int add_merge(struct reading *r, const struct alphabet *a, size_t rank, const json_t *merge,
                     char *both)
{
    const char *part[2];
    size_t bytes[2];
    int32_t id[3] = {-1, -1, -1};
    long n[2];
    if (!merge_parts(merge, part, bytes) || bytes[0] > r->longest || bytes[1] > r->longest)
        return bpe_refuse(r, "an entry of model.merges", merge,
                          "it must be two tokens of model.vocab");
    n[0] = bytes_of(r, a, part[0], bytes[0], both);
    n[1] = n[0] < 0 ? -1 : bytes_of(r, a, part[1], bytes[1], both + n[0]);
    if (n[1] >= 0) {
        id[0] = bpe_find(r->bpe, both, (size_t)n[0]);
        id[1] = bpe_find(r->bpe, both + n[0], (size_t)n[1]);
        id[2] = bpe_find(r->bpe, both, (size_t)(n[0] + n[1]));
    }
    if (id[0] < 0 || id[1] < 0 || id[2] < 0)
        return bpe_refuse(r, "an entry of model.merges", merge,
                          "both parts and what they make must be tokens of model.vocab");
    r->within = r->within || spaces_within(both, (size_t)(n[0] + n[1]));
    bpe_add_merge(r->bpe, id[0], id[1], id[2], (uint32_t)rank);
    return 0;
}

static int read_merges(struct reading *r, const struct alphabet *a, const json_t *merges)
{
    struct bpe *b = r->bpe;
    const json_t *merge;
    size_t i;
    if (!json_is_array(merges))
        return bpe_refuse(r, "model.merges", merges, "it must be a list");
    for (b->merge_slots = 1024; b->merge_slots < 2 * json_array_size(merges);)
        b->merge_slots *= 2;
    b->merge = malloc(b->merge_slots * sizeof *b->merge);
    char *both = malloc(2 * r->longest + 1);
    int rc = b->merge && both ? 0 : no_memory(r);
    if (rc == 0)
        memset(b->merge, 0xff, b->merge_slots * sizeof *b->merge);
    json_array_foreach(merges, i, merge)
    {
        if (rc != 0)
            break;
        rc = add_merge(r, a, i, merge, both);
    }
    free(both);
    return rc;
}

/* ---- the model ---- */

/* Check that fields of the model that would change ids have values that change nothing. */
static int check_model(const struct reading *r, const json_t *model)
{
    const char *const plain[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                 r->bpe->spaces ? NULL : "byte_fallback"};
    const json_t *type = json_object_get(model, "type");
    if (!model || (type && (!json_is_string(type) || strcmp(json_string_value(type), "BPE") != 0)))
        return bpe_refuse(r, "model.type", type, "byte-level BPE is supported");
    for (size_t i = 0; i < sizeof plain / sizeof *plain && plain[i]; i++) {
        char name[64];
        const json_t *value = json_object_get(model, plain[i]);
        const bool nothing = !value || json_is_null(value) || json_is_false(value) ||
                             (json_is_string(value) && json_string_length(value) == 0) ||
                             (json_is_number(value) && !(json_number_value(value) > 0));
        snprintf(name, sizeof name, "model.%s", plain[i]);
        if (!nothing)
            return bpe_refuse(r, name, value, "this is not supported");
    }
    return json_is_object(json_object_get(model, "vocab"))
               ? 0
               : bpe_refuse(r, "model.vocab", NULL, "it must be an object");
}

/* Find the spaces before which every text may be cut, after a letter: words end there, and no
 * added token spans them. */
static const char *find_cuts(const struct bpe *b)
{
    const struct added_set *const sets[] = {&b->raw, &b->normalized};
    bool words = false, space = true, line = false;
    for (int i = 0; i < b->stages; i++) {
        words = words || split_ends_words(&b->stage[i]);
        line = line || split_ends_lines(&b->stage[i]);
        if (!split_allows_cuts(&b->stage[i]))
            return "";
    }
    if (!words || (b->spaces && b->prefix != PREFIX_NEVER))
        return "";
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sets[s]->count; i++) {
            const struct added_token *t = &sets[s]->token[i];
            const char last = t->text[t->bytes - 1];
            if (t->rstrip && ((last | 32) >= 'a' && (last | 32) <= 'z'))
                return "";
            space = space && !memchr(t->text, ' ', t->bytes);
            line = line && !memchr(t->text, '\n', t->bytes);
        }
    return space ? (line ? " \n" : " ") : line ? "\n" : "";
}

static int make_work(struct reading *r)
{
    struct bpe *b = r->bpe;
    const int most = omp_get_max_threads();
    b->work = calloc((size_t)most, sizeof *b->work);
    if (!b->work)
        return no_memory(r);
    while (b->works < most && (b->work[b->works] = bpe_work_new()))
        b->works++;
    return b->works == most ? 0 : no_memory(r);
}

static int read_root(struct reading *r)
{
    struct alphabet a;
    const json_t *model = json_object_get(r->root, "model");
    TRY(bpe_read_pipeline(r));
    TRY(check_model(r, model));
    alphabet_make(&a);
    r->bpe->falls_back = r->bpe->spaces && json_is_true(json_object_get(model, "byte_fallback"));
    r->bpe->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    TRY(read_tokens(r, &a, json_object_get(model, "vocab")));
    TRY(read_merges(r, &a, json_object_get(model, "merges")));
    /* Merges decide nothing across words, unless a whole text may be a token. */
    if (r->bpe->spaces && !r->within && !r->bpe->ignore_merges)
        r->bpe->stage[r->bpe->stages++] = (struct split){.kind = SPLIT_SPACES};
    if (r->bpe->begin_of_text >= r->bpe->ids)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: post_processor begins texts with id %d, which no token has", r->path,
                    r->bpe->begin_of_text);
    TRY(make_work(r));
    r->bpe->cut_at = find_cuts(r->bpe);
    return 0;
}

int bpe_from(const char *path, json_t *root, struct bpe **out)
{
    struct reading r = {.path = path, .root = root, .bpe = calloc(1, sizeof *r.bpe)};
    *out = NULL;
    if (!r.bpe)
        return no_memory(&r);
    unicode_prepare();
    r.bpe->begin_of_text = -1;
    int rc = 0;
    if (getrandom(&r.bpe->seed, sizeof r.bpe->seed, 0) != (ssize_t)sizeof r.bpe->seed)
        rc = fail(NJ_E_IO, "%s: getrandom: %s", path, strerror(errno));
    if (rc == 0)
        rc = read_root(&r);
    json_decref(r.added);
    if (rc != 0)
        bpe_free(r.bpe);
    else
        *out = r.bpe;
    return rc;
}

/* Read tokenizer.json, or make one from vocab.json and merges.txt; path: its name in sentences. */
static int read_files(const char *dir, char path[PATH_BYTES], json_t **root, json_t **defaults)
{
    const char *const form =
        vocab_files_are(dir) ? "%s (vocab.json, merges.txt)" : "%s/tokenizer.json";
    *root = *defaults = NULL;
    if (snprintf(path, PATH_BYTES, form, dir) >= PATH_BYTES)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    return vocab_files_are(dir) ? vocab_files_json(dir, root, defaults)
                                : json_read_table(path, "fetch the model again", root);
}

int bpe_read(const char *dir, struct bpe **out)
{
    char path[PATH_BYTES];
    json_t *root, *defaults;
    *out = NULL;
    int rc = read_files(dir, path, &root, &defaults);
    if (rc == 0)
        rc = added_config(dir, root, defaults);
    if (rc == 0)
        rc = bpe_from(path, root, out);
    json_decref(root);
    json_decref(defaults);
    return rc;
}

static void free_added(struct added_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->token[i].text);
    free(set->token);
}

void bpe_free(struct bpe *b)
{
    if (!b)
        return;
    free_added(&b->raw);
    free_added(&b->normalized);
    for (int i = 0; i < b->stages; i++)
        split_free(&b->stage[i]);
    for (int i = 0; i < b->works; i++)
        bpe_work_free(b->work[i]);
    free(b->work);
    free(b->text);
    free(b->start);
    free(b->present);
    free(b->special);
    free(b->added);
    free(b->by_text);
    free(b->merge);
    free(b);
}

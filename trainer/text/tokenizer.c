/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.c: finds the tokenizer of a model, and divides a long text among threads: it is cut
 * where no word, no added token and no composed character can span the cut.
 */
#include "text/tokenizer.h"

#include "base/grow.h"
#include "formats/gguf.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/notes.h"
#include "io/path.h"
#include "text/bpe.h"
#include "text/gguf_tokenizer.h"
#include "text/metadata.h"
#include "text/vocab_files.h"

#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { BYTE_IDS = 256, BYTE_END = 256, BYTE_VOCAB_MOST = 384 /* 257 as a multiple of 128 */ };

/* ---- opening ---- */

/* Fields of config.json on tokens: -1 if a field or the file is absent. */
struct said {
    int end;   /* eos_token_id, the first if it is a list */
    int vocab; /* vocab_size */
};

static int id_of(const json_t *value)
{
    const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    return id >= 0 && id <= INT32_MAX ? (int)id : -1;
}

static int read_said(const char *dir, struct said *out)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/config.json", dir);
    json_t *root;
    const int rc = json_read_optional(path, "fetch the model again", &root);
    const json_t *end = json_object_get(root, "eos_token_id");
    out->end = id_of(json_is_array(end) ? json_array_get(end, 0) : end);
    out->vocab = id_of(json_object_get(root, "vocab_size"));
    json_decref(root);
    return rc;
}

/* Find the ends of documents and turns. Chat models name the end of a turn as eos; their
 * documents still end with the other token. */
static void find_ends(struct tokenizer *t)
{
    static const char *const turns[] = {"<|im_end|>", "<|eot_id|>", "<|eot|>",      "<end_of_turn>",
                                        "<turn|>",    "<|return|>", "[|endofturn|]"};
    static const char *const documents[] = {"<|endoftext|>", "<|end_of_text|>", "<eos>"};
    int turn = -1;
    for (size_t i = 0; i < sizeof turns / sizeof *turns && turn < 0; i++)
        turn = tokenizer_added(t, turns[i]);
    t->end_of_turn = turn;
    if (t->end_of_text >= 0 && t->end_of_text != turn)
        return;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        const int id = tokenizer_added(t, documents[i]);
        if (id >= 0) {
            t->end_of_text = id;
            return;
        }
    }
}

/* Take over the tokenizer of a reader that returned rc. */
static int take_bpe(struct tokenizer *t, int rc)
{
    t->end_of_turn = -1;
    if (rc != 0 && rc != NJ_E_UNSUPPORTED)
        return rc;
    if (rc != 0) { /* token files can still be used */
        snprintf(t->kind, sizeof t->kind, "token files");
        snprintf(t->refusal, sizeof t->refusal, "%s", fail_text());
        return 0;
    }
    snprintf(t->kind, sizeof t->kind, "bpe");
    t->vocab_size = t->bpe->ids;
    find_ends(t);
    return 0;
}

static int take_bytes(struct tokenizer *t, int ids)
{
    snprintf(t->kind, sizeof t->kind, "bytes");
    t->vocab_size = ids;
    t->end_of_text = ids > BYTE_END ? BYTE_END : -1;
    t->end_of_turn = -1;
    return 0;
}

static int open_file(const char *path, struct tokenizer *t)
{
    struct gguf g;
    int rc = metadata_open(path, &g);
    if (rc != 0)
        return rc;
    if (gguf_tokenizer_is(&g)) {
        rc = gguf_tokenizer_read(&g, &t->bpe, &t->end_of_text);
        rc = take_bpe(t, rc == NJ_E_FORMAT ? NJ_E_UNSUPPORTED : rc);
    } else {
        rc = take_bytes(t, BYTE_IDS + 1);
    }
    gguf_close(&g);
    return rc;
}

static bool holds(const char *dir, const char *name)
{
    char path[PATH_BYTES];
    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* Find a file of another kind of tokenizer; NULL: there is none. */
static const char *find_other(const char *dir)
{
    static const char *const others[] = {"tekken.json",        "tokenizer.model", "vocab.json",
                                         "tokenizer.tiktoken", "qwen.tiktoken",   "hy.tiktoken",
                                         "spiece.model"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (holds(dir, others[i]))
            return others[i];
    return NULL;
}

/* Set up a model without a tokenizer: token files can be used, texts cannot. */
static int take_none(const char *dir, const struct said *said, struct tokenizer *t)
{
    const char *found = find_other(dir);
    t->end_of_text = said->end;
    if (found)
        return take_bpe(t, fail(NJ_E_UNSUPPORTED,
                                "%s: no tokenizer.json, and %s is not read; write one by python3 "
                                "-c \"from transformers import AutoTokenizer as A; "
                                "A.from_pretrained('%s').save_pretrained('%s')\"",
                                dir, found, dir, dir));
    return take_bpe(t, fail(NJ_E_UNSUPPORTED,
                            "%s: no tokenizer.json, and a vocabulary of %d tokens is not one of "
                            "bytes; copy the model's tokenizer.json there, or give --tokenizer "
                            "bytes if it is to read bytes",
                            dir, said->vocab));
}

/* Open a model without a tokenizer. "bytes" is for models whose vocabulary is that of bytes and
 * an end of text, with padding; without a config.json nothing says otherwise. */
static int open_without(const char *dir, struct tokenizer *t)
{
    struct said said;
    TRY(read_said(dir, &said));
    if (said.vocab < 0)
        return take_bytes(t, BYTE_IDS + 1);
    if (said.vocab < BYTE_IDS || said.vocab > BYTE_VOCAB_MOST)
        return take_none(dir, &said, t);
    return take_bytes(t, said.vocab > BYTE_IDS ? BYTE_IDS + 1 : BYTE_IDS);
}

int tokenizer_open(const char *dir, struct tokenizer *out)
{
    struct said said;
    memset(out, 0, sizeof *out);
    snprintf(out->dir, sizeof out->dir, "%s", dir);
    if (strlen(dir) + sizeof "/tokenizer.json" > PATH_BYTES)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    if (metadata_is(dir))
        return open_file(dir, out);
    if (!holds(dir, "tokenizer.json") && !vocab_files_are(dir))
        return open_without(dir, out);
    const int rc = read_said(dir, &said);
    out->end_of_text = said.end;
    return rc != 0 ? rc : take_bpe(out, bpe_read(dir, &out->bpe));
}

static int refuse_bytes(const char *dir, const char *found)
{
    return fail(NJ_E_ARG,
                "--tokenizer bytes is for models without a tokenizer, and %s has %s; leave the "
                "option out",
                dir, found);
}

static int open_file_bytes(const char *path, struct tokenizer *t)
{
    struct gguf g;
    TRY(metadata_open(path, &g));
    const int rc = gguf_tokenizer_is(&g) ? refuse_bytes(path, "one in its metadata")
                                         : take_bytes(t, BYTE_IDS + 1);
    gguf_close(&g);
    return rc;
}

static int open_bytes(const char *dir, struct tokenizer *t)
{
    struct said said;
    const char *found = holds(dir, "tokenizer.json") ? "tokenizer.json" : find_other(dir);
    if (found)
        return refuse_bytes(dir, found);
    TRY(read_said(dir, &said));
    if (said.vocab >= 0 && said.vocab < BYTE_IDS)
        return fail(NJ_E_ARG,
                    "--tokenizer bytes needs 256 tokens, and the vocabulary of %s has %d; leave "
                    "the option out",
                    dir, said.vocab);
    return take_bytes(t, said.vocab == BYTE_IDS ? BYTE_IDS : BYTE_IDS + 1);
}

int tokenizer_open_as(const char *dir, enum tokenizer_choice choice, struct tokenizer *out)
{
    if (choice == TOKENIZER_AUTO)
        return tokenizer_open(dir, out);
    memset(out, 0, sizeof *out);
    snprintf(out->dir, sizeof out->dir, "%s", dir);
    if (strlen(dir) + sizeof "/tokenizer.json" > PATH_BYTES)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    return metadata_is(dir) ? open_file_bytes(dir, out) : open_bytes(dir, out);
}

void tokenizer_close(struct tokenizer *t)
{
    bpe_free(t->bpe);
    t->bpe = NULL;
}

int32_t tokenizer_begin_of_text(const struct tokenizer *t)
{
    return t->bpe ? t->bpe->begin_of_text : -1;
}

int32_t tokenizer_added(const struct tokenizer *t, const char *text)
{
    return t->bpe ? bpe_find_added(t->bpe, text) : -1;
}

/* ---- encoding ---- */

static int reserve(struct span *s, size_t more)
{
    if (GROW(s->ids, s->capacity, s->count + more))
        return 0;
    return fail(NJ_E_NOMEM, "out of memory for %zu tokens", s->count + more);
}

static int encode_bytes(struct span *s)
{
    int rc = reserve(s, s->bytes);
    for (size_t i = 0; i < s->bytes && rc == 0; i++)
        s->ids[s->count + i] = (unsigned char)s->text[i];
    s->count += rc != 0 ? 0 : s->bytes;
    return rc;
}

/* Note that bytes of a text have no token. */
static void note_missing(const struct bpe *b)
{
    if (b->missing_bytes > 0 && bpe_missed(b))
        note("the tokenizer has no token for %d of the 256 bytes, and some of those are in the "
             "text: "
             "as in the tokenizers library, they %s",
             b->missing_bytes, b->unknown < 0 ? "are dropped" : "become its unknown token");
}

int tokenizer_encode_spans(const struct tokenizer *t, struct span *spans, size_t count)
{
    char why[256] = "";
    int failed = 0;
    const int threads = t->bpe ? t->bpe->works : 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (count > 1)
    for (size_t i = 0; i < count; i++) {
        const int rc = t->bpe ? bpe_encode(t->bpe, t->bpe->work[omp_get_thread_num()], &spans[i])
                              : encode_bytes(&spans[i]);
        if (rc != 0) { /* the sentence belongs to the thread that recorded it */
#pragma omp critical
            {
                failed = rc;
                snprintf(why, sizeof why, "%s", fail_text());
            }
        }
    }
    if (t->bpe && !failed)
        note_missing(t->bpe);
    return failed ? fail(failed, "%s", why) : 0;
}

/* Return whether a text may be cut before byte i > 0. */
static bool may_cut(const struct tokenizer *t, const char *text, size_t i)
{
    const char c = (char)(text[i - 1] | 32);
    return !t->bpe ||
           (c >= 'a' && c <= 'z' && text[i] != '\0' && strchr(t->bpe->cut_at, text[i]) != NULL);
}

size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t bytes, size_t wanted)
{
    size_t i = wanted > 0 || !t->bpe ? wanted : 1;
    while (i > 0 && i < bytes && !may_cut(t, text, i))
        i++;
    return i < bytes ? i : bytes;
}

size_t tokenizer_cut_last(const struct tokenizer *t, const char *text, size_t bytes)
{
    size_t i = bytes > 0 ? bytes - 1 : 0;
    while (i > 0 && !may_cut(t, text, i))
        i--;
    return i;
}

/* Cut the text into spans of about `piece` bytes; return the number of spans. */
static size_t cut_spans(const struct tokenizer *t, const char *text, size_t bytes, size_t piece,
                        struct span *spans)
{
    size_t n = 0;
    for (size_t at = 0; at < bytes;) {
        const size_t length = tokenizer_cut(t, text + at, bytes - at, piece);
        spans[n++] = (struct span){.text = text + at, .bytes = length};
        at += length;
    }
    return n;
}

static int append_spans(struct span *all, const struct span *spans, size_t n)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += spans[i].count;
    TRY(reserve(all, total));
    for (size_t i = 0; i < n; i++)
        if (spans[i].count > 0) {
            memcpy(all->ids + all->count, spans[i].ids, spans[i].count * sizeof *all->ids);
            all->count += spans[i].count;
        }
    return 0;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t bytes, int32_t **ids,
                     size_t *count, size_t *capacity)
{
    const size_t piece = (size_t)1 << 17;
    struct span all = {
        .text = text, .bytes = bytes, .ids = *ids, .count = *count, .capacity = *capacity};
    if (t->vocab_size == 0)
        return fail(NJ_E_UNSUPPORTED, "%s", t->refusal);
    struct span *spans = malloc((bytes / piece + 1) * sizeof *spans);
    if (!spans)
        return fail(NJ_E_NOMEM, "out of memory for %zu bytes of text", bytes);
    const size_t n = cut_spans(t, text, bytes, piece, spans);
    int rc = tokenizer_encode_spans(t, spans, n);
    if (rc == 0)
        rc = append_spans(&all, spans, n);
    for (size_t i = 0; i < n; i++)
        free(spans[i].ids);
    free(spans);
    *ids = all.ids;
    *count = all.count;
    *capacity = all.capacity;
    return rc;
}

/* ---- the table ---- */

const char *tokenizer_token(const struct tokenizer *t, int32_t id, size_t *bytes, bool *special)
{
    static const char end[] = "<|endoftext|>";
    static unsigned char all[BYTE_IDS];
    *bytes = 0;
    *special = false;
    if (id < 0 || id >= t->vocab_size)
        return NULL;
    if (t->bpe) {
        *bytes = t->bpe->start[id + 1] - t->bpe->start[id];
        *special = t->bpe->special[id];
        return t->bpe->present[id] ? t->bpe->text + t->bpe->start[id] : NULL;
    }
    *special = id >= BYTE_IDS;
    if (*special) {
        *bytes = sizeof end - 1;
        return end;
    }
    *bytes = 1;
    all[id] = (unsigned char)id; /* all threads write the same value */
    return (const char *)&all[id];
}

const char *tokenizer_decode(const struct tokenizer *t, int32_t id, size_t *bytes)
{
    bool special;
    const char *text = tokenizer_token(t, id, bytes, &special);
    if (!text || special)
        *bytes = 0;
    return text && !special ? text : "";
}

uint64_t tokenizer_hash(const struct tokenizer *t)
{
    uint64_t hash = 0;
    for (int32_t id = 0; id < t->vocab_size; id++) {
        bool special;
        size_t bytes;
        const char *text = tokenizer_token(t, id, &bytes, &special);
        const uint64_t head[3] = {hash, (uint64_t)id << 1 | special, bytes};
        if (text)
            hash = XXH3_64bits_withSeed(text, bytes, XXH3_64bits(head, sizeof head));
    }
    return hash;
}

int32_t tokenizer_difference(const struct tokenizer *a, const struct tokenizer *b, int *common)
{
    const struct tokenizer *longer = a->vocab_size > b->vocab_size ? a : b;
    *common = longer == a ? b->vocab_size : a->vocab_size;
    if (*common == 0)
        return -1;
    for (int32_t id = 0; id < *common; id++) {
        bool special[2];
        size_t bytes[2];
        const char *x = tokenizer_token(a, id, &bytes[0], &special[0]);
        const char *y = tokenizer_token(b, id, &bytes[1], &special[1]);
        if (!x != !y || bytes[0] != bytes[1] || (x && memcmp(x, y, bytes[0]) != 0))
            return id;
    }
    /* Tokens of the vocabulary proper would change how a text is split; added ones stand alone. */
    for (int32_t id = *common; id < longer->vocab_size; id++)
        if (!longer->bpe || (longer->bpe->present[id] && !longer->bpe->added[id]))
            return id;
    return -1;
}

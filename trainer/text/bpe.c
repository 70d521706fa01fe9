/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe.c: text to ids. Added tokens are extracted, the rest is normalized and split into words,
 * and the bytes of each word are merged: always the pair of the lowest rank, the leftmost of
 * those.
 *
 * Words are looked up in a cache first: most words of a text have been seen before.
 */
#include "text/bpe.h"

#include "base/grow.h"
#include "io/error.h"
#include "text/bpe_spaces.h"
#include "text/unicode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Sizes of the cache; a slot is one cache line. */
enum { CACHED_BYTES = 30, CACHED_IDS = 8, CACHE_SLOTS = 1 << 16 };

struct cached {
    uint8_t bytes, ids; /* bytes 0: the slot is free */
    char text[CACHED_BYTES];
    int32_t id[CACHED_IDS];
};

struct symbol {
    int32_t id; /* token of the symbol; -1: merged into the symbol before */
    int32_t previous, next;
};

struct pair {
    uint32_t rank;
    int32_t at; /* index of the symbol on the left */
    int32_t id; /* token that the pair becomes */
};

struct bpe_work {
    struct cached *cache;
    struct symbol *symbol;
    struct pair *heap;
    size_t pairs, symbols, word_capacity;
    char *text[2]; /* buffers: normalized text; text with a space in front */
    size_t text_capacity[2];
    struct split_place *place[STAGES_MOST];
    struct split_budget left;
    bool first;   /* whether no part of the text has been encoded yet */
    bool follows; /* whether it then continues another text */
    bool missed;  /* whether a byte without a token has been seen */
    /* text that is being encoded */
    const struct bpe *bpe;
    struct span *span;
};

struct bpe_work *bpe_work_new(void)
{
    struct bpe_work *w = calloc(1, sizeof *w);
    if (w)
        w->cache = calloc(CACHE_SLOTS, sizeof *w->cache);
    if (w && !w->cache) {
        free(w);
        w = NULL;
    }
    return w;
}

void bpe_work_free(struct bpe_work *w)
{
    if (!w)
        return;
    free(w->cache);
    free(w->symbol);
    free(w->heap);
    free(w->text[0]);
    free(w->text[1]);
    for (int i = 0; i < STAGES_MOST; i++)
        split_free_place(w->place[i]);
    free(w);
}

/* ---- merging ---- */

static inline size_t merge_slot(const struct bpe *b, int32_t left, int32_t right)
{
    const int32_t key[2] = {left, right};
    return XXH3_64bits_withSeed(key, sizeof key, b->seed) & (b->merge_slots - 1);
}

static const struct bpe_merge *find_merge(const struct bpe *b, int32_t left, int32_t right)
{
    for (size_t i = merge_slot(b, left, right);; i = (i + 1) & (b->merge_slots - 1)) {
        const struct bpe_merge *m = &b->merge[i];
        if (m->left < 0)
            return NULL;
        if (m->left == left && m->right == right)
            return m;
    }
}

void bpe_add_merge(struct bpe *b, int32_t left, int32_t right, int32_t id, uint32_t rank)
{
    size_t i = merge_slot(b, left, right);
    while (b->merge[i].left >= 0 && !(b->merge[i].left == left && b->merge[i].right == right))
        i = (i + 1) & (b->merge_slots - 1);
    b->merge[i] = (struct bpe_merge){left, right, id, rank};
}

static inline bool before(const struct pair *a, const struct pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct bpe_work *w, struct pair p)
{
    size_t i = w->pairs++;
    for (; i > 0 && before(&p, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = p;
}

static struct pair heap_pop(struct bpe_work *w)
{
    const struct pair top = w->heap[0], last = w->heap[--w->pairs];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < w->pairs) {
        if (child + 1 < w->pairs && before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

/* Queue the pair of symbol `at` and the next one. */
static void push_pair(const struct bpe *b, struct bpe_work *w, int32_t at)
{
    const int32_t next = at < 0 ? -1 : w->symbol[at].next;
    if (next < 0)
        return;
    const struct bpe_merge *m = find_merge(b, w->symbol[at].id, w->symbol[next].id);
    if (m)
        heap_push(w, (struct pair){m->rank, at, m->id});
}

static int reserve_word(struct bpe_work *w, size_t n)
{
    if (n <= w->word_capacity)
        return 0;
    if (n > INT_MAX / 4)
        return fail(NJ_E_UNSUPPORTED, "a word of %zu bytes is too long; split the text", n);
    const size_t grown = 2 * n + 64;
    free(w->symbol);
    free(w->heap);
    w->symbol = malloc(grown * sizeof *w->symbol);
    w->heap = malloc(2 * grown * sizeof *w->heap); /* a merge takes a pair and queues two */
    w->word_capacity = w->symbol && w->heap ? grown : 0;
    return w->word_capacity ? 0 : fail(NJ_E_NOMEM, "out of memory for a word of %zu bytes", n);
}

/* Return the token of the byte or, in a tokenizer whose symbols are code points, of the code
 * point at s, or of its first byte; -1: none. *more: number of bytes that the token stands for. */
static int32_t symbol_at(const struct bpe *b, const unsigned char *s, size_t left, size_t *more)
{
    uint32_t cp;
    *more = 1;
    if (!b->spaces)
        return b->of_byte[s[0]];
    const size_t length = utf8_next(s, left, &cp);
    const int32_t id = bpe_find(b, (const char *)s, length);
    *more = id < 0 && b->falls_back ? 1 : length;
    return id < 0 && b->falls_back ? b->of_byte[s[0]] : id;
}

/* Make a symbol for each byte or code point. As in the `tokenizers` library, one without a token
 * becomes the unknown token or is left out. */
static void put_symbols(const struct bpe *b, struct bpe_work *w, const unsigned char *word,
                        size_t n)
{
    bool unknown = false;
    int32_t count = 0;
    for (size_t i = 0, more; i < n; i += more) {
        const int32_t id = symbol_at(b, word + i, n - i, &more);
        const bool fused = unknown && b->fuse_unknown;
        unknown = id < 0;
        w->missed = w->missed || unknown;
        if (unknown && (fused || b->unknown < 0))
            continue;
        w->symbol[count] = (struct symbol){unknown ? b->unknown : id, count - 1, count + 1};
        count++;
    }
    if (count > 0)
        w->symbol[count - 1].next = -1;
    w->symbols = (size_t)count;
}

/* Merge a word; the result is in w->symbol, from the first on. */
static int merge_word(const struct bpe *b, struct bpe_work *w, const unsigned char *word, size_t n)
{
    TRY(reserve_word(w, n));
    put_symbols(b, w, word, n);
    const int32_t last = (int32_t)w->symbols - 1;
    w->pairs = 0;
    for (int32_t i = 0; i < last; i++)
        push_pair(b, w, i);
    while (w->pairs > 0) {
        const struct pair top = heap_pop(w);
        struct symbol *left = &w->symbol[top.at];
        if (left->id < 0 || left->next < 0)
            continue;
        struct symbol *right = &w->symbol[left->next];
        /* A neighbor may have changed since the pair was queued. */
        const struct bpe_merge *m = find_merge(b, left->id, right->id);
        if (!m || m->id != top.id)
            continue;
        left->id = top.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            w->symbol[left->next].previous = top.at;
        push_pair(b, w, left->previous);
        push_pair(b, w, top.at);
    }
    return 0;
}

/* ---- ids ---- */

static int push_ids(struct span *s, const int32_t *ids, size_t n)
{
    if (!GROW(s->ids, s->capacity, s->count + n))
        return fail(NJ_E_NOMEM, "out of memory for %zu tokens", s->count + n);
    for (size_t i = 0; i < n; i++)
        s->ids[s->count + i] = ids[i];
    s->count += n;
    return 0;
}

static int push_word(struct bpe_work *w, const char *word, size_t n)
{
    const size_t first = w->span->count;
    int rc = merge_word(w->bpe, w, (const unsigned char *)word, n);
    for (int32_t i = w->symbols > 0 ? 0 : -1; i >= 0 && rc == 0; i = w->symbol[i].next)
        rc = push_ids(w->span, &w->symbol[i].id, 1);
    if (rc != 0 || n > CACHED_BYTES || w->span->count - first > CACHED_IDS)
        return rc;
    struct cached *c = &w->cache[XXH3_64bits(word, n) & (CACHE_SLOTS - 1)];
    c->bytes = (uint8_t)n;
    c->ids = (uint8_t)(w->span->count - first);
    memcpy(c->text, word, n);
    if (c->ids > 0) /* a word may have no ids, and there may be no list yet */
        memcpy(c->id, w->span->ids + first, c->ids * sizeof *c->id);
    return 0;
}

static int encode_word(struct bpe_work *w, const char *word, size_t n)
{
    if (n <= CACHED_BYTES) {
        const struct cached *c = &w->cache[XXH3_64bits(word, n) & (CACHE_SLOTS - 1)];
        if (c->bytes == n && memcmp(c->text, word, n) == 0)
            return push_ids(w->span, c->id, c->ids);
    }
    const int32_t whole = w->bpe->ignore_merges ? bpe_find(w->bpe, word, n) : -1;
    return whole >= 0 ? push_ids(w->span, &whole, 1) : push_word(w, word, n);
}

/* ---- words ---- */

static int reserve_text(struct bpe_work *w, int which, size_t bytes)
{
    if (GROW(w->text[which], w->text_capacity[which], bytes))
        return 0;
    return fail(NJ_E_NOMEM, "out of memory for %zu bytes of text", bytes);
}

/* Split by the stages from `stage` on; the pieces of the last stage are words. */
static int encode_words(struct bpe_work *w, int stage, const char *text, size_t bytes)
{
    const struct bpe *b = w->bpe;
    if (stage == b->stages)
        return encode_word(w, text, bytes);
    const struct split *s = &b->stage[stage];
    if (s->kind == SPLIT_PREFIX) {
        if (text[0] == ' ')
            return encode_words(w, stage + 1, text, bytes);
        TRY(reserve_text(w, 1, bytes + 1));
        w->text[1][0] = ' ';
        memcpy(w->text[1] + 1, text, bytes);
        return encode_words(w, stage + 1, w->text[1], bytes + 1);
    }
    for (size_t at = 0; at < bytes;) {
        const long end = split_next(s, &w->place[stage], &w->left, text, bytes, at);
        if (end < 0)
            return (int)end;
        if (!split_removes(s, w->place[stage]))
            TRY(encode_words(w, stage + 1, text + at, (size_t)end - at));
        at = (size_t)end;
    }
    return 0;
}

/* Write a text with its spaces, and one in front if requested, to a buffer; return the number of
 * bytes, or an error. */
static long spell_spaces(struct bpe_work *w, int which, const char *text, size_t bytes, bool prefix)
{
    const int rc = reserve_text(w, which, bytes + 1);
    if (rc != 0)
        return rc;
    char *to = w->text[which];
    *to = ' ';
    return (long)(spaces_fold(text, bytes, to + prefix) + prefix);
}

/* Return whether a stretch of text, with its spaces as spaces, gets a space in front. */
static bool takes_prefix(const struct bpe_work *w, const char *text, size_t bytes)
{
    const enum bpe_prefix prefix = w->follows ? PREFIX_NEVER : w->bpe->prefix;
    return bytes > 0 && !spaces_begin(text, bytes) &&
           (prefix == PREFIX_LACKING || (prefix == PREFIX_FIRST && w->first));
}

static int encode_text(void *work, const char *text, size_t bytes)
{
    struct bpe_work *w = work;
    const bool prefix = w->bpe->spaces && takes_prefix(w, text, bytes);
    w->first = w->follows = false;
    if (!w->bpe->spaces || (w->bpe->early && !prefix))
        return encode_words(w, 0, text, bytes);
    const long count = spell_spaces(w, 1, text, bytes, prefix);
    return count < 0 ? (int)count : encode_words(w, 0, w->text[1], (size_t)count);
}

static int encode_token(void *work, int32_t id)
{
    struct bpe_work *w = work;
    w->first = w->follows = false;
    return push_ids(w->span, &id, 1);
}

static int encode_raw(void *work, const char *text, size_t bytes)
{
    struct bpe_work *w = work;
    const struct added_visitor v = {w, encode_text, encode_token};
    size_t count;
    if (w->bpe->early) {
        const bool each =
            w->bpe->prefix == PREFIX_EACH || (w->bpe->doubled && spaces_begin(text, bytes));
        const bool prefix = each && !w->follows;
        const long spelt = spell_spaces(w, 0, text, bytes, prefix);
        return spelt < 0 ? (int)spelt
                         : added_split(&w->bpe->normalized, w->text[0], (size_t)spelt, &v);
    }
    const int changed =
        unicode_normalize(w->bpe->form, text, bytes, &w->text[0], &count, &w->text_capacity[0]);
    if (changed < 0)
        return changed;
    return changed ? added_split(&w->bpe->normalized, w->text[0], count, &v)
                   : added_split(&w->bpe->normalized, text, bytes, &v);
}

int bpe_encode(const struct bpe *b, struct bpe_work *w, struct span *span)
{
    w->bpe = b;
    w->span = span;
    w->left = split_budget(span->bytes);
    w->first = !span->follows;
    w->follows = span->follows;
    const struct added_visitor v = {w, encode_raw, encode_token};
    return added_split(&b->raw, span->text, span->bytes, &v);
}

bool bpe_missed(const struct bpe *b)
{
    for (int i = 0; i < b->works; i++)
        if (b->work[i]->missed)
            return true;
    return false;
}

/* ---- tokens ---- */

size_t bpe_slot(const struct bpe *b, const char *text, size_t bytes)
{
    return XXH3_64bits_withSeed(text, bytes, b->seed) & (b->by_text_slots - 1);
}

int32_t bpe_find(const struct bpe *b, const char *text, size_t bytes)
{
    const size_t mask = b->by_text_slots - 1;
    for (size_t i = bpe_slot(b, text, bytes); b->by_text[i] >= 0; i = (i + 1) & mask) {
        const size_t at = b->start[b->by_text[i]];
        if (b->start[b->by_text[i] + 1] - at == bytes && memcmp(b->text + at, text, bytes) == 0)
            return b->by_text[i];
    }
    return -1;
}

int32_t bpe_find_added(const struct bpe *b, const char *text)
{
    const struct added_set *const sets[] = {&b->raw, &b->normalized};
    const size_t bytes = strlen(text);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sets[s]->count; i++)
            if (sets[s]->token[i].bytes == bytes &&
                memcmp(sets[s]->token[i].text, text, bytes) == 0)
                return sets[s]->token[i].id;
    return -1;
}

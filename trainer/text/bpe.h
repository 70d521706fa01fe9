/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe.h: internals of the tokenizer: byte-level BPE as a tokenizer.json defines it.
 */
#ifndef NOJIT_TRAINER_BPE_H
#define NOJIT_TRAINER_BPE_H

#include "text/tokenizer_split.h"
#include "text/unicode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAGES_MOST = 32, ADDED_BYTES_MOST = 256 };

/* Token that is matched literally in the text, before the text is split. */
struct added_token {
    char *text;
    size_t bytes;
    int32_t id;
    bool special, normalized, single_word, lstrip, rstrip;
};

/* Added tokens, sorted by their bytes. */
struct added_set {
    struct added_token *token;
    size_t count;
    bool first[256]; /* whether a token begins with this byte */
};

struct bpe_merge {
    int32_t left, right; /* left -1: the slot is free */
    int32_t id;
    uint32_t rank;
};

/* Which texts get a space in front; a text that follows another never does. */
enum bpe_prefix {
    PREFIX_NEVER,
    PREFIX_EACH,    /* each stretch between added tokens */
    PREFIX_LACKING, /* each stretch that does not begin with a space */
    PREFIX_FIRST    /* a stretch that begins a text, but not with a space */
};

struct bpe {
    /* bytes of the tokens: id i has text[start[i]] to text[start[i + 1]] */
    char *text;
    size_t *start;
    int32_t ids;          /* largest id + 1 */
    bool *present;        /* whether an id has a token */
    bool *special;        /* whether the token is not part of a text */
    bool *added;          /* whether the token is an added one */
    int32_t *by_text;     /* hash table of the vocabulary: id or -1 */
    size_t by_text_slots; /* number of slots, a power of two */
    struct bpe_merge *merge;
    size_t merge_slots;
    int32_t of_byte[256];   /* id of the token of each byte; -1: none */
    int missing_bytes;      /* number of bytes without a token */
    int32_t unknown;        /* id that such bytes become; -1: none */
    bool fuse_unknown;      /* whether several of them in a row become one */
    uint64_t seed;          /* seed of the hash tables, so that nobody can choose colliding keys */
    bool ignore_merges;     /* whether a word that is a token is not merged */
    enum unicode_form form; /* normalization form of texts that are encoded */
    bool spaces;            /* whether symbols are code points: SentencePiece (bpe_spaces.h) */
    enum bpe_prefix prefix; /* texts that get a space, for that kind */
    bool doubled;    /* whether a stretch that begins with a space gets another, for that kind */
    bool early;      /* whether the normalizer adds spaces before `normalized` tokens are found */
    bool falls_back; /* whether a code point without a token becomes its bytes, of_byte */
    struct added_set raw, normalized; /* tokens found before and after normalization */
    struct split stage[STAGES_MOST];
    int stages;
    const char *cut_at;     /* string of spaces before which a text may be cut, after a letter */
    int32_t begin_of_text;  /* id that begins a text; -1: none */
    struct bpe_work **work; /* buffers, one for each thread */
    int works;
};

/* Text and its ids, which are appended to those already there. */
struct span {
    const char *text;
    size_t bytes;
    bool follows; /* whether it continues another text, so that no space is put before it */
    int32_t *ids; /* ids, grown with realloc */
    size_t count, capacity;
};

/* Read DIR/tokenizer.json, or vocab.json and merges.txt, and the tokens that other files of DIR
 * add. A feature that is not supported is NJ_E_UNSUPPORTED, with its field and value; a damaged
 * file is NJ_E_FORMAT. */
int bpe_read(const char *dir, struct bpe **out);
void bpe_free(struct bpe *b);
/* Return the id of a token of the vocabulary, or -1. */
int32_t bpe_find(const struct bpe *b, const char *text, size_t bytes);
/* Return the id of an added token, or -1. */
int32_t bpe_find_added(const struct bpe *b, const char *text);
/* Return the slot of the vocabulary's table at which the search for a text begins. */
size_t bpe_slot(const struct bpe *b, const char *text, size_t bytes);
/* Sort an added set and prepare its search. */
void added_prepare(struct added_set *set);

/* ---- encoding; bpe_work holds buffers and the cache of words, for one thread at a time ---- */
struct bpe_work *bpe_work_new(void);
void bpe_work_free(struct bpe_work *w);
int bpe_encode(const struct bpe *b, struct bpe_work *w, struct span *span);
/* Return whether a byte without a token has been seen. */
bool bpe_missed(const struct bpe *b);
/* Callbacks for the parts of a text, in order: each(user, text, bytes) or token(user, id). */
struct added_visitor {
    void *user;
    int (*each)(void *user, const char *text, size_t bytes);
    int (*token)(void *user, int32_t id);
};
int added_split(const struct added_set *set, const char *text, size_t bytes,
                const struct added_visitor *v);

/* Add a merge to the table, which has room; the last rank of a pair counts. */
void bpe_add_merge(struct bpe *b, int32_t left, int32_t right, int32_t id, uint32_t rank);

#endif

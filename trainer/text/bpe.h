/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe.h: inside of the tokenizer: byte-level BPE as a tokenizer.json defines it.
 */
#ifndef NOJIT_TRAINER_BPE_H
#define NOJIT_TRAINER_BPE_H

#include "text/tokenizer_split.h"
#include "text/unicode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAGES_MOST = 32, ADDED_BYTES_MOST = 256 };

/* A token that stands in the text as it is, before anything is split. */
struct added_token {
    char *text;
    size_t bytes;
    int32_t id;
    bool special, normalized, single_word, lstrip, rstrip;
};

/* Added tokens in the order of their bytes. */
struct added_set {
    struct added_token *token;
    size_t count;
    bool first[256]; /* bytes that one starts with */
};

struct bpe_merge {
    int32_t left, right; /* left -1: the slot is free */
    int32_t id;
    uint32_t rank;
};

/* Texts that get a space before them; a text that follows another never does. */
enum bpe_prefix {
    PREFIX_NEVER,
    PREFIX_EACH,    /* each stretch between added tokens */
    PREFIX_LACKING, /* each that begins with none */
    PREFIX_FIRST    /* one that begins a text, with none */
};

struct bpe {
    /* tokens: bytes of id i are text[start[i]] to text[start[i + 1]] */
    char *text;
    size_t *start;
    int32_t ids;          /* largest id + 1 */
    bool *present;        /* whether an id has a token */
    bool *special;        /* it is not part of a text */
    bool *added;          /* it is an added token */
    int32_t *by_text;     /* hash table of the vocabulary: id or -1 */
    size_t by_text_slots; /* a power of two */
    struct bpe_merge *merge;
    size_t merge_slots;
    int32_t of_byte[256];   /* -1: no token stands for the byte */
    int missing_bytes;      /* how many of those there are */
    int32_t unknown;        /* what they become; -1: nothing */
    bool fuse_unknown;      /* several in a row become one */
    uint64_t seed;          /* of the hash tables: nobody can choose keys that meet in them */
    bool ignore_merges;     /* a word that is a token is not merged */
    enum unicode_form form; /* of texts that are encoded */
    bool spaces;            /* of the SentencePiece kind (bpe_spaces.h): symbols are code points */
    enum bpe_prefix prefix; /* of those */
    bool early;      /* the normalizer makes spaces, before tokens of `normalized` are found */
    bool falls_back; /* a code point without token becomes its bytes, of_byte */
    struct added_set raw, normalized; /* found before and after normalization */
    struct split stage[STAGES_MOST];
    int stages;
    const char *cut_at;     /* spaces before which a text may be cut, after a letter */
    int32_t begin_of_text;  /* -1: none */
    struct bpe_work **work; /* one for each thread */
    int works;
};

/* A text and its ids, appended to what is there. */
struct span {
    const char *text;
    size_t bytes;
    bool follows; /* it goes on behind another text, so no space is put before it */
    int32_t *ids; /* grown with realloc */
    size_t count, capacity;
};

/* Reads DIR/tokenizer.json, or vocab.json and merges.txt, and the tokens that other files of DIR add. What it asks
 * for and is not done here is NJ_E_UNSUPPORTED, by field and value; a damaged file NJ_E_FORMAT. */
int bpe_read(const char *dir, struct bpe **out);
void bpe_free(struct bpe *b);
/* The id of a token of the vocabulary, or -1. */
int32_t bpe_find(const struct bpe *b, const char *text, size_t bytes);
/* The id of an added token, or -1. */
int32_t bpe_find_added(const struct bpe *b, const char *text);
/* Slot of the table of the vocabulary where a text is looked for first. */
size_t bpe_slot(const struct bpe *b, const char *text, size_t bytes);
/* Sorts an added set and prepares its search. */
void added_prepare(struct added_set *set);

/* ---- encoding; bpe_work holds buffers and the cache of words, for one thread at a time ---- */
struct bpe_work *bpe_work_new(void);
void bpe_work_free(struct bpe_work *w);
int bpe_encode(const struct bpe *b, struct bpe_work *w, struct span *span);
/* Whether a byte without a token has been met. */
bool bpe_missed(const struct bpe *b);
/* Calls each(user, text, bytes) or token(user, id) for the parts of a text, in order. */
struct added_visitor {
    void *user;
    int (*each)(void *user, const char *text, size_t bytes);
    int (*token)(void *user, int32_t id);
};
int added_split(const struct added_set *set, const char *text, size_t bytes,
                const struct added_visitor *v);

/* Adds a merge to the table, which has room; the last rank of a pair counts. */
void bpe_add_merge(struct bpe *b, int32_t left, int32_t right, int32_t id, uint32_t rank);

#endif

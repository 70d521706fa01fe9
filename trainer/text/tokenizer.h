/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.h: text to ids and back.
 */
#ifndef NOJIT_TRAINER_TOKENIZER_H
#define NOJIT_TRAINER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/path.h"

struct bpe;
struct span;

struct tokenizer {
    char kind[16]; /* "bytes", "bpe", or "token files" */
    /* ids it can produce: 257 for bytes (256 = end of text; 256 where the model has no more); 0: it cannot encode */
    int vocab_size;
    int end_of_text;      /* ends a document, in token files, too; -1: only files end documents */
    int end_of_turn;      /* ends what one side of a chat says; -1: nothing does */
    struct bpe *bpe;      /* NULL unless kind is "bpe" */
    char dir[PATH_BYTES]; /* of the model, or its GGUF file */
    char refusal[512];    /* "token files": why its tokenizer cannot be used */
    /* Called with the bytes of each stretch of text that data_open() has encoded, or NULL. */
    void (*encoded)(void *user, size_t bytes);
    void *user;
};

/* In the order of --tokenizer's choices. */
enum tokenizer_choice { TOKENIZER_AUTO, TOKENIZER_BYTES };

/* Opens the tokenizer of a folder or a GGUF file: "bpe", or, if it asks for what is not supported, "token files":
 * encoding is then NJ_E_UNSUPPORTED with the refusal. One without a tokenizer works on "bytes" if its config.json, if
 * there is one, has 256 to 384 tokens, else on "token files". end_of_text is eos_token_id of DIR/config.json or of the
 * file, or, if that ends a turn of a chat, the token that ends documents. */
int tokenizer_open(const char *dir, struct tokenizer *out);
/* Opens it as tokenizer_open() does; with TOKENIZER_BYTES always as "bytes", or NJ_E_ARG if there is a tokenizer. */
int tokenizer_open_as(const char *dir, enum tokenizer_choice choice, struct tokenizer *out);
void tokenizer_close(struct tokenizer *t);
/* Begins every text; -1: nothing does. */
int32_t tokenizer_begin_of_text(const struct tokenizer *t);
/* The id of an added token, or -1. */
int32_t tokenizer_added(const struct tokenizer *t, const char *text);

/* Appends the ids of text, added tokens found in it included, to *ids (grown with realloc). What is no UTF-8 becomes
 * the tokens of its bytes; bytes that no token stands for are noted (io/notes.h). One call at a time for a tokenizer;
 * it uses all threads. */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t bytes, int32_t **ids,
                     size_t *count, size_t *capacity);
/* Appends to each span (bpe.h) the ids of its text, by all threads. Not for "token files". */
int tokenizer_encode_spans(const struct tokenizer *t, struct span *spans, size_t count);
/* First place from `wanted` on where a text may be cut with the same ids as a whole; bytes if there
 * is none. */
size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t bytes, size_t wanted);
/* Returns the last such place before the end, also of each longer text that begins with this one; 0: there is none. */
size_t tokenizer_cut_last(const struct tokenizer *t, const char *text, size_t bytes);

/* Bytes that an id stands for in a text: none for special ids and those beyond the table. Valid
 * until tokenizer_close(). */
const char *tokenizer_decode(const struct tokenizer *t, int32_t id, size_t *bytes);
/* The same for every id of the table; NULL if no token has it. */
const char *tokenizer_token(const struct tokenizer *t, int32_t id, size_t *bytes, bool *special);
/* Over the table: ids, bytes and which are special. 0 for "token files". */
uint64_t tokenizer_hash(const struct tokenizer *t);
/* First id whose token differs, -1 if none does or one of them is "token files". One table may have
 * more ids, all of them added tokens. *common: ids that both have, 0 if one is "token files". */
int32_t tokenizer_difference(const struct tokenizer *a, const struct tokenizer *b, int *common);

#endif

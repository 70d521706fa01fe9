/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.h: converts text to ids and back.
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
    /* number of ids it can produce: 257 for bytes (256 = end of text; 256 ids if the model has
     * no more); 0: it cannot encode */
    int vocab_size;
    int end_of_text;      /* id that ends a document, in token files, too; -1: only files do */
    int end_of_turn;      /* id that ends a turn of a chat; -1: none */
    struct bpe *bpe;      /* NULL unless kind is "bpe" */
    char dir[PATH_BYTES]; /* folder of the model, or its GGUF file */
    char refusal[512];    /* reason why a tokenizer of kind "token files" cannot be used */
    /* Callback with the size of each stretch of text that data_open() has encoded, or NULL. */
    void (*encoded)(void *user, size_t bytes);
    void *user;
};

/* Choices of --tokenizer, in its order. */
enum tokenizer_choice { TOKENIZER_AUTO, TOKENIZER_BYTES };

/* Open the tokenizer of a folder or a GGUF file: "bpe", or, if it needs an unsupported feature,
 * "token files": encoding is then NJ_E_UNSUPPORTED with the refusal. A model without a tokenizer
 * uses "bytes" if its config.json, if there is one, has 256 to 384 tokens, else "token files".
 * end_of_text is eos_token_id of DIR/config.json or of the file, or, if that ends a turn of a
 * chat, the token that ends documents. */
int tokenizer_open(const char *dir, struct tokenizer *out);
/* Open it as tokenizer_open() does; with TOKENIZER_BYTES always as "bytes", or NJ_E_ARG if there
 * is a tokenizer. */
int tokenizer_open_as(const char *dir, enum tokenizer_choice choice, struct tokenizer *out);
void tokenizer_close(struct tokenizer *t);
/* Return the id that begins every text; -1: none. */
int32_t tokenizer_begin_of_text(const struct tokenizer *t);
/* Return the id of an added token, or -1. */
int32_t tokenizer_added(const struct tokenizer *t, const char *text);

/* Append the ids of text, including added tokens found in it, to *ids (grown with realloc).
 * Invalid UTF-8 becomes the tokens of its bytes; bytes without a token are noted (io/notes.h).
 * Only one call at a time is allowed for a tokenizer; it uses all threads. */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t bytes, int32_t **ids,
                     size_t *count, size_t *capacity);
/* Append to each span (bpe.h) the ids of its text, on all threads. Not for "token files". */
int tokenizer_encode_spans(const struct tokenizer *t, struct span *spans, size_t count);
/* Return the first position from `wanted` on at which a text can be cut without changing its
 * ids; bytes if there is none. */
size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t bytes, size_t wanted);
/* Return the last such position before the end, valid also for each longer text that begins with
 * this one; 0: there is none. */
size_t tokenizer_cut_last(const struct tokenizer *t, const char *text, size_t bytes);

/* Return the bytes that an id stands for in a text: none for special ids and those beyond the
 * table. Valid until tokenizer_close(). */
const char *tokenizer_decode(const struct tokenizer *t, int32_t id, size_t *bytes);
/* Return the bytes of any id of the table; NULL if no token has it. */
const char *tokenizer_token(const struct tokenizer *t, int32_t id, size_t *bytes, bool *special);
/* Return a hash of the table: ids, bytes and special flags. 0 for "token files". */
uint64_t tokenizer_hash(const struct tokenizer *t);
/* Return the first id whose token differs, -1 if none does or one of them is "token files". One
 * table may have more ids, if all of them are added tokens. *common: number of ids that both
 * have, 0 if one is "token files". */
int32_t tokenizer_difference(const struct tokenizer *a, const struct tokenizer *b, int *common);

#endif

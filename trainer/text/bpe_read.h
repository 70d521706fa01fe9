/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_read.h: internals of bpe_read(), shared by its files and the reader of GGUF's tokenizers.
 */
#ifndef NOJIT_TRAINER_BPE_READ_H
#define NOJIT_TRAINER_BPE_READ_H

#include "text/bpe.h"

#include <jansson.h>

struct reading {
    const char *path;
    json_t *root;
    struct bpe *bpe;
    json_t *added;   /* [id, entry] of each text of added_tokens */
    size_t new_ids;  /* number of added tokens that the vocabulary lacks */
    size_t longest;  /* size of the longest token as the file spells it */
    bool byte_level; /* whether the pre_tokenizer has a ByteLevel stage */
    bool within;     /* whether a merge makes a token with a space behind another character */
};

/* Refuse a field whose value is not supported, with NJ_E_UNSUPPORTED. */
int bpe_refuse(const struct reading *r, const char *name, const json_t *value, const char *remedy);
/* Make a tokenizer from the parsed file, for bpe_read() and others; path: its name in sentences. */
int bpe_from(const char *path, json_t *root, struct bpe **out);
/* Read normalizer, pre_tokenizer, post_processor and decoder. */
int bpe_read_pipeline(struct reading *r);

#endif

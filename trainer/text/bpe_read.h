/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_read.h: inside of bpe_read(): what its files share, and GGUF's tokenizers with them.
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
    size_t new_ids;  /* of them that the vocabulary lacks */
    size_t longest;  /* bytes of a token as the file writes it */
    bool byte_level; /* the pre_tokenizer has been there */
    bool within;     /* a merge makes a token with a space behind another character */
};

/* NJ_E_UNSUPPORTED: the field has a value that is not supported. */
int bpe_refuse(const struct reading *r, const char *name, const json_t *value, const char *remedy);
/* What bpe_read() does with the file once it is parsed; path: its name in sentences. */
int bpe_from(const char *path, json_t *root, struct bpe **out);
/* normalizer, pre_tokenizer, post_processor and decoder. */
int bpe_read_pipeline(struct reading *r);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_pre.h: tokenizer.ggml.pre: what stands before the merges of a GGUF file's tokenizer, by name.
 */
#ifndef NOJIT_TRAINER_GGUF_PRE_H
#define NOJIT_TRAINER_GGUF_PRE_H

#include "formats/gguf.h"
#include "text/bpe.h"

enum { PRE_NAMES_MOST = 12 };

/* The pattern and the normalizer are those of the tokenizer.json of the models that the name stands for;
 * ignore_merges and begins are llama.cpp's. */
struct gguf_pre {
    const char *name[PRE_NAMES_MOST]; /* the first is written */
    const char *pattern;              /* NULL: GPT-2's, which ByteLevel has */
    bool digits;                      /* each stands alone, before the pattern */
    bool nfc;
    bool ignore_merges;
    bool begins; /* with tokenizer.ggml.bos_token_id, unless the file says otherwise */
};

/* NULL: not known. */
const struct gguf_pre *gguf_pre_find(struct gguf_text name);
/* All names, for a sentence. */
const char *gguf_pre_names(char *out, size_t bytes);
/* The one that cuts texts as b does; NULL if none does. llama.cpp does not normalise texts, so NFC is no reason
 * against one, but one that agrees is preferred; NFKC, which changes many texts, is. */
const struct gguf_pre *gguf_pre_of(const struct bpe *b);

#endif

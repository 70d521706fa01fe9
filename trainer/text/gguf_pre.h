/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_pre.h: tokenizer.ggml.pre: the names of the steps before the merges of a GGUF file's
 * tokenizer.
 */
#ifndef NOJIT_TRAINER_GGUF_PRE_H
#define NOJIT_TRAINER_GGUF_PRE_H

#include "formats/gguf.h"
#include "text/bpe.h"

enum { PRE_NAMES_MOST = 12, PRE_PATTERNS_MOST = 6, PRE_LIST_BYTES = 256 };

/* The patterns and the normalizer are those of the tokenizer.json of the models that the name
 * stands for; ignore_merges and begins are llama.cpp's. */
struct gguf_pre {
    const char *name[PRE_NAMES_MOST]; /* names, of which the first is written */
    /* patterns that split in turn; none: GPT-2's, which ByteLevel has */
    const char *pattern[PRE_PATTERNS_MOST];
    bool digits; /* whether each digit is separate, before the patterns */
    bool nfc;
    bool ignore_merges;
    bool begins; /* whether texts begin with tokenizer.ggml.bos_token_id by default */
};

/* Return the entry with this name; NULL: unknown. */
const struct gguf_pre *gguf_pre_find(struct gguf_text name);
/* Write the first name of each entry, for a sentence; PRE_LIST_BYTES are enough. */
const char *gguf_pre_names(char *out, size_t bytes);
/* Return the entry that splits texts as b does; NULL if none does. llama.cpp does not normalize
 * texts, so NFC does not rule out an entry, but one that agrees is preferred; NFKC, which
 * changes many texts, does. */
const struct gguf_pre *gguf_pre_of(const struct bpe *b);

#endif

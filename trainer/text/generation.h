/* SPDX-License-Identifier: Apache-2.0
 *
 * generation.h: end tokens of a model's texts: generation_config.json.
 */
#ifndef NOJIT_TRAINER_GENERATION_H
#define NOJIT_TRAINER_GENERATION_H

#include "text/tokenizer.h"

enum { STOP_IDS_MOST = 8 };

struct generation {
    int32_t stop[STOP_IDS_MOST]; /* ids that end a generated text, each once */
    int stops;
};

/* Read the end tokens of the model in DIR, which need not have the file: eos_token_id of
 * generation_config.json or, if it has none, of config.json, and the tokenizer's end of text and
 * of a turn. A GGUF or APR file has only the latter. Ids of the files must lie below vocab_size.
 * Return 0, NJ_E_FORMAT, NJ_E_IO or NJ_E_NOMEM. */
int generation_read(const char *dir, const struct tokenizer *t, int vocab_size,
                    struct generation *out);
/* Read the end tokens that the model itself declares: eos_token_id of generation_config.json or,
 * without that file, of config.json; for a GGUF or APR file, the tokens that end a text and a
 * turn. */
int generation_said(const char *dir, int vocab_size, struct generation *out);
/* Add an id to eos_token_id of DIR/generation_config.json, unless it is there. Without that
 * file, start from that of the model `base`, or from the tokens in config.json of DIR, or of
 * `base`. */
int generation_add_stop(const char *dir, const char *base, int32_t id);
/* Add an id, once; return false if there is no room for another. */
bool generation_add(struct generation *g, int32_t id);
/* Return whether an id ends a generated text. */
bool generation_stops(const struct generation *g, int32_t id);

#endif

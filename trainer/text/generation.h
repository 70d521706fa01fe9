/* SPDX-License-Identifier: Apache-2.0
 *
 * generation.h: where a model's texts end: generation_config.json.
 */
#ifndef NOJIT_TRAINER_GENERATION_H
#define NOJIT_TRAINER_GENERATION_H

#include "text/tokenizer.h"

enum { STOP_IDS_MOST = 8 };

struct generation {
    int32_t stop[STOP_IDS_MOST]; /* ids that end what is generated, each once */
    int stops;
};

/* Of the model in DIR, which need not have the file: eos_token_id of it, or, where it has none, of config.json, and
 * the tokenizer's end of text and of a turn. A GGUF or APR file has the latter alone. Ids of the files must lie below
 * vocab_size. Returns 0, NJ_E_FORMAT, NJ_E_IO or NJ_E_NOMEM. */
int generation_read(const char *dir, const struct tokenizer *t, int vocab_size,
                    struct generation *out);
/* Reads what the model says of this itself: eos_token_id of generation_config.json or, without that file, of
 * config.json; of a GGUF or APR file, the tokens that end a text and a turn. */
int generation_said(const char *dir, int vocab_size, struct generation *out);
/* Adds an id to eos_token_id of DIR/generation_config.json, where it is not named yet. Without that file it is that of
 * the model `base`, or what config.json of DIR, or of `base`, says of tokens. */
int generation_add_stop(const char *dir, const char *base, int32_t id);
/* Adds an id, once; false where there is no room for another. */
bool generation_add(struct generation *g, int32_t id);
/* Whether an id ends what is generated. */
bool generation_stops(const struct generation *g, int32_t id);

#endif

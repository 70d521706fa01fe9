/* SPDX-License-Identifier: Apache-2.0
 *
 * prefix_token.h: the token in front of a text without context, when its likelihood is computed.
 */
#ifndef NOJIT_TRAINER_PREFIX_TOKEN_H
#define NOJIT_TRAINER_PREFIX_TOKEN_H

#include "text/tokenizer.h"

/* Find bos_token, or else eos_token, of the tokenizer_config.json of t's model, as
 * lm-evaluation-harness does. If the model has no such file, or it names neither: the token that
 * begins texts, or else the one that ends them. -1: none. */
int prefix_token(const struct tokenizer *t, int32_t *out);

#endif

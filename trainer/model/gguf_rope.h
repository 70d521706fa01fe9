/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_rope.h: positions in GGUF files: keys, and tensors with divisors of the frequencies. APR files have the same
 * tensor of Llama 3's rule.
 */
#ifndef NOJIT_TRAINER_GGUF_ROPE_H
#define NOJIT_TRAINER_GGUF_ROPE_H

#include "formats/tensors.h"
#include "model/config.h"
#include "model/gguf_source.h"

/* The tensor of a model whose positions are scaled by Llama 3's rule, and the two of LongRoPE's: a divisor of each
 * frequency. */
#define GGUF_ROPE_FREQS "rope_freqs.weight"
#define GGUF_ROPE_LONG "rope_factors_long.weight"
#define GGUF_ROPE_SHORT "rope_factors_short.weight"

/* The tables that keys describe: that of all layers, or the first of two, and the second, which layers with a window
 * have; -1: no heads rotate by such a table. */
struct gguf_tables {
    int full, windowed;
    int head_dim; /* size of the heads that the first one rotates */
};
struct gguf_tables gguf_rope_tables(const struct model_config *c);
/* Return the number of frequencies of the first of these tables. */
int gguf_rope_count(const struct model_config *c);
/* Compute the divisors of its frequencies by Llama 3's rule. */
void gguf_rope_freqs(const struct model_config *c, float *divisors);
/* Set the scaling of c from that tensor of w, if present; scaling by another rule is refused. */
int gguf_read_rope_freqs(const char *path, const struct tensors *w, struct model_config *c);
/* Set the fields of positions: theta, scaling, and the part of a head that rotates. */
int gguf_put_rope(struct gguf_source *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * generation.h: how a model's folder wants it to generate: generation_config.json.
 */
#ifndef NOJIT_TRAINER_GENERATION_H
#define NOJIT_TRAINER_GENERATION_H

#include "text/tokenizer.h"

enum { STOP_IDS_MOST = 8 };

struct generation {
    int32_t stop[STOP_IDS_MOST]; /* ids that end what is generated, each once */
    int stops;
    /* What the file says of sampling; what is not given is 0. The caller decides what holds. */
    struct {
        bool do_sample, temperature, top_p, top_k, min_p;
    } given;
    bool do_sample;
    double temperature;  /* from 0 to a million */
    double top_p, min_p; /* from 0 to 1 */
    int top_k;           /* from 0 on */
};

/* Of the model in DIR, which need not have the file: eos_token_id of it, or, where it has none, of config.json, and
 * the tokenizer's end of text and of a turn. A GGUF or APR file has the latter alone. Ids of the files must lie below
 * vocab_size. Returns 0, NJ_E_FORMAT, NJ_E_IO or NJ_E_NOMEM. */
int generation_read(const char *dir, const struct tokenizer *t, int vocab_size,
                    struct generation *out);
/* Whether an id ends what is generated. */
bool generation_stops(const struct generation *g, int32_t id);

#endif

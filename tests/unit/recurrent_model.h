/* SPDX-License-Identifier: Apache-2.0
 *
 * recurrent_model.h: small models with recurrent layers, in the fixture's folder. Include it after the fixture.
 */
#ifndef NOJIT_TESTS_RECURRENT_MODEL_H
#define NOJIT_TESTS_RECURRENT_MODEL_H

#include "model/init.h"

/* Write a model of two layers of a preset, one of them recurrent. */
static inline void write_recurrent(const char *preset, const char *name, int first)
{
    struct model_config c;
    ok(preset_config(preset_find(preset), &c));
    arch_keep(&c.arch, (const int[]){first, first + 1}, 2);
    c.layers = 2;
    c.vocab_size = VOCAB;
    c.eos_id = END_OF_TEXT;
    ok(init_model(path_of(name), &c, 1, NJ_TYPE_F32, 1 << 30, NULL));
}

/* Let texts depend on all that blocks compute: a new model's blocks add little to the stream. */
static inline void amplify(const struct net *n)
{
    for (size_t i = 0; i < n->p.specs; i++) {
        float *w = (float *)net_weight(n, n->p.first[i]);
        for (int64_t k = 0; n->p.spec[i].rank > 1 && k < tensor_elements(&n->p.spec[i]); k++)
            w[k] *= 6;
    }
}

#endif

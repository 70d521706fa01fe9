/* SPDX-License-Identifier: Apache-2.0
 *
 * params.h: where each tensor of a model lies in the flat arenas.
 */
#ifndef NOJIT_TRAINER_PARAMS_H
#define NOJIT_TRAINER_PARAMS_H

#include "model/config.h"
#include "model/tensor_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Layout of every arena (weights, master weights, moments, gradients): matrices first, then taps of convolutions, which
 * decay as they do; then norms and biases. Each fused parameter starts at a multiple of 64 elements; gaps stay zero.
 * Tensors that are always float32 (tensor_is_wide()) have the room of two elements for each of theirs, in arenas that
 * are not trained. */
struct params {
    struct tensor_spec *spec; /* Hugging Face tensors, in canonical order */
    int64_t *first;           /* first element of each spec: a row range of a fused parameter */
    size_t specs;
    int layers; /* number of layers that `layer` lists; adapters have none */
    /* [layers] first elements of the tensors of a layer, by role; -1: it has none, or none here. Parts of a fused
     * parameter follow each other. */
    int64_t (*layer)[ROLE_COUNT];
    /* [layers + 1] first elements of the matrices of each layer, and the end of the last one's. */
    int64_t *begin;
    int64_t embed, head, norm; /* head == embed if tied */
    int64_t count, decayed;    /* number of elements in all, and of those that decay */
    int64_t matrices;          /* number of elements of matrices, which are the first ones */
};

/* Matrices that lie in the arenas; the first element of the others is -1. Other tensors always lie there.
 * PARAMS_HEAD: the model has no tensor but that of its LM head. */
enum params_matrices { PARAMS_ALL, PARAMS_EMBEDDING, PARAMS_VECTORS, PARAMS_HEAD };
int params_layout(const struct model_config *c, enum params_matrices here, struct params *out);
void params_free(struct params *p);
/* Return the first element of the matrices of a layer; of layer p->layers, their end. The matrices of all layers lie
 * together: the embedding comes before them, an untied head after them. There is no gap between them (hidden
 * sizes and numbers of rows are multiples of 8): anything in a gap of the gradients would count in their norm. Routers
 * and gates of experts may have other numbers of rows, in models that are not trained. */
int64_t params_layer(const struct params *p, int layer);
/* Return the number of elements of the matrices of all layers. */
int64_t params_matrices(const struct params *p);
/* Return the first place from `element` on where a parameter may start. */
int64_t params_align(int64_t element);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_layers.h: the two blocks of a model whose layers are all alike.
 */
#ifndef NOJIT_TESTS_PLAIN_LAYERS_H
#define NOJIT_TESTS_PLAIN_LAYERS_H

#include "model/config.h"

#define ATTENTION(c) ((c)->arch.kind[0].block[PLAIN_ATTENTION])
#define GLU(c) ((c)->arch.kind[0].block[PLAIN_GLU])

#endif

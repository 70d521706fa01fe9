/* SPDX-License-Identifier: Apache-2.0
 *
 * config_layers.h: inside of config_from(): layers that differ in their windows and rotations.
 */
#ifndef NOJIT_TRAINER_CONFIG_LAYERS_H
#define NOJIT_TRAINER_CONFIG_LAYERS_H

#include "base/families.h"
#include "model/config_fields.h"

/* Read tables of rotations, windows, and which layer has which, and make the kinds of layers from the one that all are
 * so far. */
int config_layers(const struct fields *f, const struct family *family, struct model_config *c);

#endif

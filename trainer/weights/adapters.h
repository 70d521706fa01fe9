/* SPDX-License-Identifier: Apache-2.0
 *
 * adapters.h: adapters between files and the arenas.
 */
#ifndef NOJIT_TRAINER_ADAPTERS_H
#define NOJIT_TRAINER_ADAPTERS_H

#include "state/engine_struct.h"

/* Read adapters, or draw new ones if dir is NULL. */
int adapters_load(struct engine *e, const char *dir);
/* Save adapters in PEFT's form: DIR/adapter_config.json, DIR/adapter_model.safetensors. */
int adapters_save(struct engine *e, const char *dir);

#endif

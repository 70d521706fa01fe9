/* SPDX-License-Identifier: Apache-2.0
 *
 * adapters.h: adapters between files and the arenas.
 */
#ifndef NOJIT_TRAINER_ADAPTERS_H
#define NOJIT_TRAINER_ADAPTERS_H

#include "state/engine_struct.h"

/* Read the adapters of the student, if it has any, or draw new ones if dir is NULL. */
int adapters_load(struct engine *e, const char *dir);
/* Send what rank 0 has loaded of them to the other ranks. */
void adapters_send(struct work *r, struct engine *e);
/* Save adapters in PEFT's form: DIR/adapter_config.json, DIR/adapter_model.safetensors. */
int adapters_save(struct engine *e, const char *dir);

#endif

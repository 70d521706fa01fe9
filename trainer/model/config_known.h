/* SPDX-License-Identifier: Apache-2.0
 *
 * config_known.h: inside of config_from(): the fields of config.json that are known, so that no other field goes
 * unnoticed.
 */
#ifndef NOJIT_TRAINER_CONFIG_KNOWN_H
#define NOJIT_TRAINER_CONFIG_KNOWN_H

#include "base/families.h"
#include "model/config_fields.h"

/* Refuse a field that changes what a model of the family computes and has another value than the one that changes
 * nothing. Return 0 or NJ_E_UNSUPPORTED. */
int config_refuse_values(const struct fields *f, const struct family *family);
/* Refuse a field that is not known in the family: it may change what the model computes. null counts as absent. Return
 * 0 or NJ_E_UNSUPPORTED. */
int config_refuse_unknown(const struct fields *f, const struct family *family);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * config_known.h: inside of config_from(): the fields of config.json that are known, so that none passes unseen.
 */
#ifndef NOJIT_TRAINER_CONFIG_KNOWN_H
#define NOJIT_TRAINER_CONFIG_KNOWN_H

#include "model/config_fields.h"

/* Refuse a field that changes what a model of the family computes and has another value than the one that changes
 * nothing. Return 0 or NJ_E_UNSUPPORTED. */
int config_refuse_values(const struct fields *f, const char *model_type);
/* Refuse a field that is not known: it may change what the model computes. null is as if it were not there. Return 0 or
 * NJ_E_UNSUPPORTED. */
int config_refuse_unknown(const struct fields *f);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * config_fields.h: inside of config_from(): fields of a configuration, each read or refused by name and value.
 */
#ifndef NOJIT_TRAINER_CONFIG_FIELDS_H
#define NOJIT_TRAINER_CONFIG_FIELDS_H

#include "model/config_from.h"

#include <stdbool.h>

/* The fields of one file; object changes to a nested one while its fields are read. */
struct fields {
    const struct config_file *file;
    json_t *object;
};

/* Return the file's name for a field, and the way to correct it. */
struct config_name field_called(const struct config_file *f, const char *field);
const char *field_remedy(const struct config_file *f, const char *correction);
/* Return the field, or NULL if it is absent or null. */
json_t *field_get(const struct fields *f, const char *name);
int field_refuse(const struct fields *f, int code, const char *name, const json_t *value,
                 const char *remedy);
/* Join the supported values and the way to correct the field. */
enum { REMEDY_BYTES = 160 };
const char *field_supported(const struct fields *f, const char *what, const char *correction,
                            char out[REMEDY_BYTES]);

/* Read a whole number from 1 to INT_MAX (missing 0: the field is required); a number above 0, in float32 too (missing
 * NAN: the field is required); a switch; a token id, or the first of a list of ids, or -1 if there is none. */
int field_int(const struct fields *f, const char *name, int missing, int *out);
int field_number(const struct fields *f, const char *name, double missing, double *out);
int field_bool(const struct fields *f, const char *name, bool missing, bool *out);
int field_token(const struct fields *f, const char *name, int *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * apr.h: APR files, version 2: metadata and tensors. docs/apr.md describes the part of the
 * format that is read.
 */
#ifndef NOJIT_TRAINER_APR_H
#define NOJIT_TRAINER_APR_H

#include "formats/tensors.h"
#include "io/path.h"

#include <jansson.h>
#include <stdbool.h>

struct apr {
    char path[PATH_BYTES];
    json_t *metadata; /* metadata, a JSON object */
    struct tensors tensors;
};

/* Map the file and check all of it but its weights. The format's own block types become Q4_0 and
 * Q8_0 where these hold the same numbers, else F32, while they are read. Nothing stays open on
 * failure. Return 0, NJ_E_IO, NJ_E_FORMAT, NJ_E_UNSUPPORTED, NJ_E_NOMEM. */
int apr_open(const char *path, struct apr *out);
void apr_close(struct apr *a);
/* Return whether path is a regular file that begins as an APR file of any version does. */
bool apr_is(const char *path);
/* Read the whole file that w was opened from, and refuse it if its checksum does not match. */
int apr_check(const char *path, const struct tensors *w);

/* Return the value of a key; NULL if it is absent or null. */
json_t *apr_value(const struct apr *a, const char *key);
/* Return the first of several keys for one property that has a value, or the first of all if
 * none has. */
const char *apr_key(const struct apr *a, const char *const *keys, int count);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * apr.h: APR files, version 2: metadata and tensors. docs/apr.md has what is read of the format.
 */
#ifndef NOJIT_TRAINER_APR_H
#define NOJIT_TRAINER_APR_H

#include "formats/tensors.h"
#include "io/path.h"

#include <jansson.h>
#include <stdbool.h>

struct apr {
    char path[PATH_BYTES];
    json_t *metadata; /* an object */
    struct tensors tensors;
};

/* Maps the file and checks all but its weights. The format's own types of blocks become Q4_0 and Q8_0 where these
 * hold the same numbers, else F32, while they are read. Nothing stays open on failure. Returns 0, NJ_E_IO,
 * NJ_E_FORMAT, NJ_E_UNSUPPORTED, NJ_E_NOMEM. */
int apr_open(const char *path, struct apr *out);
void apr_close(struct apr *a);
/* A regular file that begins as an APR file of any version does. */
bool apr_is(const char *path);
/* Reads the file that w was opened from whole, and refuses it if its checksum is another. */
int apr_check(const char *path, const struct tensors *w);

/* The value of a key; NULL where it is absent or null. */
json_t *apr_value(const struct apr *a, const char *key);
/* Of so many keys for one thing the first that has a value; the first of all where none has. */
const char *apr_key(const struct apr *a, const char *const *keys, int count);

#endif

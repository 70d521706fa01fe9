/* SPDX-License-Identifier: Apache-2.0
 *
 * file_kinds.h: inside of data.c and prompts.c: the kind of a file, by its name.
 */
#ifndef NOJIT_TRAINER_FILE_KINDS_H
#define NOJIT_TRAINER_FILE_KINDS_H

#include <stdbool.h>

#include "formats/unpack.h"

enum file_format {
    FILE_UNNAMED, /* tokens, or a text that the user named */
    FILE_TEXT,
    FILE_U16,
    FILE_U32,
    FILE_TOKENS,
    FILE_JSONL,
    FILE_PARQUET
};
struct file_kind {
    enum file_format format;
    enum packing_of_bytes packing; /* packing of the file as a whole */
};

/* Refuse a format that is known but not read. */
int file_kind_of(const char *path, struct file_kind *out);
/* Return whether a file holds rows. */
bool file_has_rows(const char *path);
/* Return whether a file found in a folder belongs to the data; a format that is refused does, too. */
bool path_is_data(const char *path);
const char *extension_of(const char *path); /* ".txt", or "" */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * data_file.h: inside of data.c: the bytes of a file of data. They are read, not mapped: when somebody
 * cuts a mapped file, the process that looks at it ends.
 */
#ifndef NOJIT_TRAINER_DATA_FILE_H
#define NOJIT_TRAINER_DATA_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/unpack.h"

struct data_file {
    const char *path; /* the caller's */
    int fd;
    size_t bytes; /* as many as it had when it was opened; 0: it is not open */
    /* Read in order: text[0 .. have) is what was read and not skipped yet. */
    const char *text;
    size_t have, at; /* at: what was read of the file */
    char *buffer;
    size_t capacity;
    /* Of a file that is packed as a whole: what was read and not unpacked yet, packed[0 .. packed_have) from
     * packed_from on; and bytes that it has made. */
    struct unpacker *unpacker;
    unsigned char *packed;
    size_t packed_from, packed_have, made;
    bool ended; /* nothing comes after text */
};

/* Refuses what is no regular file. An empty one is not kept open. */
int data_file_open(struct data_file *f, const char *path);
/* Has what is read in order unpacked. BYTES_PLAIN: it is not packed. */
int data_file_unpack(struct data_file *f, enum packing_of_bytes packing);
void data_file_close(struct data_file *f); /* twice is fine, as is a zeroed one */
/* Bytes from a place on; a file that has become shorter is an error. Threads may share f. */
int data_file_read(const struct data_file *f, size_t from, void *to, size_t bytes);
/* In order: reads on until `wanted` bytes are there, or all that are left. */
int data_file_fill(struct data_file *f, size_t wanted);
/* Whether text is all that is left. */
bool data_file_ended(const struct data_file *f);
/* Bytes of the file, as it lies there, behind what was skipped. */
size_t data_file_told(const struct data_file *f);
void data_file_skip(struct data_file *f, size_t bytes);

#endif

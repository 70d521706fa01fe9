/* SPDX-License-Identifier: Apache-2.0
 *
 * data_file.h: inside of data.c: the bytes of a file of data. They are read, not mapped: a process that reads a mapped
 * file dies when somebody truncates the file.
 */
#ifndef NOJIT_TRAINER_DATA_FILE_H
#define NOJIT_TRAINER_DATA_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/unpack.h"

struct data_file {
    const char *path; /* path of the file, owned by the caller */
    int fd;
    size_t bytes; /* size of the file when it was opened; 0: it is not open */
    /* Reading in order: text[0 .. have) was read and has not been skipped yet. */
    const char *text;
    size_t have, at; /* at: number of bytes of the file that were read */
    char *buffer;
    size_t capacity;
    /* Unpacking of a file that is packed as a whole: packed[packed_from .. packed_from + packed_have) was read and has
     * not been unpacked yet; `made` bytes have been unpacked. */
    struct unpacker *unpacker;
    unsigned char *packed;
    size_t packed_from, packed_have, made;
    bool ended; /* whether nothing comes after text */
};

/* Refuse anything but a regular file. An empty one is not kept open. */
int data_file_open(struct data_file *f, const char *path);
/* Have the bytes that are read in order unpacked. BYTES_PLAIN: the file is not packed. */
int data_file_unpack(struct data_file *f, enum packing_of_bytes packing);
void data_file_close(struct data_file *f); /* may be called twice, or on a zeroed struct */
/* Read bytes from an offset on; a file that has become shorter is an error. Threads may share f. */
int data_file_read(const struct data_file *f, size_t from, void *to, size_t bytes);
/* Read on in order until `wanted` bytes are there, or all that are left. */
int data_file_fill(struct data_file *f, size_t wanted);
/* Return whether text is all that is left. */
bool data_file_ended(const struct data_file *f);
/* Return the number of bytes of the file, as stored, that were used so far. */
size_t data_file_told(const struct data_file *f);
void data_file_skip(struct data_file *f, size_t bytes);

#endif

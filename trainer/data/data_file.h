/* SPDX-License-Identifier: Apache-2.0
 *
 * data_file.h: inside of data.c: the bytes of a file of data. They are read, not mapped: when somebody
 * cuts a mapped file, the process that looks at it ends.
 */
#ifndef NOJIT_TRAINER_DATA_FILE_H
#define NOJIT_TRAINER_DATA_FILE_H

#include <stddef.h>

struct data_file {
    const char *path; /* the caller's */
    int fd;
    size_t bytes; /* as many as it had when it was opened; 0: it is not open */
    /* Read in order: text[0 .. have) is what was read and not skipped yet. */
    const char *text;
    size_t have, at; /* at: what was read of the file */
    char *buffer;
    size_t capacity;
};

/* Refuses what is no regular file. An empty one is not kept open. */
int data_file_open(struct data_file *f, const char *path);
void data_file_close(struct data_file *f); /* twice is fine, as is a zeroed one */
/* Bytes from a place on; a file that has become shorter is an error. Threads may share f. */
int data_file_read(const struct data_file *f, size_t from, void *to, size_t bytes);
/* In order: reads on until `wanted` bytes are there, or all that are left. */
int data_file_fill(struct data_file *f, size_t wanted);
void data_file_skip(struct data_file *f, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet.h: rows of a Parquet file as JSON objects. Columns that nobody wants are not read; of the others, one page at
 * a time is in memory.
 */
#ifndef NOJIT_TRAINER_PARQUET_H
#define NOJIT_TRAINER_PARQUET_H

#include <jansson.h>

#include "data/data_file.h"

struct parquet;

/* The reader's callbacks: whether a column is wanted, and a notice of one that is not. */
struct parquet_reader {
    bool (*wants)(void *user, const char *column);
    void (*unread)(void *user, const char *column);
    void *user;
};

/* Read the footer; the file remains the caller's, and open. */
int parquet_open(const struct data_file *f, const struct parquet_reader *reader,
                 struct parquet **out);
void parquet_close(struct parquet *p); /* NULL is allowed */
/* Read the next row; *out is NULL at the end. *row_fault: this row alone has failed. */
int parquet_next(struct parquet *p, json_t **out, bool *row_fault);
/* Return how far into the file the rows read so far reach, in bytes. */
size_t parquet_told(const struct parquet *p);

#endif

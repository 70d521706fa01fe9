/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet.h: rows of a Parquet file as JSON objects. Columns that nobody wants are not read; of the others one page at
 * a time lies in memory.
 */
#ifndef NOJIT_TRAINER_PARQUET_H
#define NOJIT_TRAINER_PARQUET_H

#include <jansson.h>

#include "data/data_file.h"

struct parquet;

/* Who reads: whether a column is wanted, and what is to know of one that is not. */
struct parquet_reader {
    bool (*wants)(void *user, const char *column);
    void (*unread)(void *user, const char *column);
    void *user;
};

/* Reads the footer; the file stays the caller's, and open. */
int parquet_open(const struct data_file *f, const struct parquet_reader *reader,
                 struct parquet **out);
void parquet_close(struct parquet *p); /* NULL is fine */
/* Reads the next row; NULL where there is none. *row_fault: what failed is this row alone. */
int parquet_next(struct parquet *p, json_t **out, bool *row_fault);
/* Bytes of the file behind the rows that were read. */
size_t parquet_told(const struct parquet *p);

#endif

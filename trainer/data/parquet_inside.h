/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_inside.h: declarations that the parts of the Parquet reader share: footer (parquet_footer.c), pages of a
 * column (parquet_pages.c), their values (parquet_values.c) and rows (parquet.c).
 */
#ifndef NOJIT_TRAINER_PARQUET_INSIDE_H
#define NOJIT_TRAINER_PARQUET_INSIDE_H

#include "data/parquet.h"
#include "data/parquet_bits.h"
#include "data/thrift.h"
#include "formats/unpack.h"

/* Numbers of the format. */
enum pq_physical {
    PQ_BOOLEAN,
    PQ_INT32,
    PQ_INT64,
    PQ_INT96,
    PQ_FLOAT,
    PQ_DOUBLE,
    PQ_BYTES,
    PQ_FIXED,
    PQ_PHYSICALS
};
enum pq_repetition { PQ_REQUIRED, PQ_OPTIONAL, PQ_REPEATED };
enum pq_encoding {
    PQ_PLAIN = 0,
    PQ_PLAIN_DICTIONARY = 2,
    PQ_RLE = 3,
    PQ_DELTA = 5,
    PQ_DELTA_LENGTH = 6,
    PQ_DELTA_BYTES = 7,
    PQ_RLE_DICTIONARY = 8,
    PQ_SPLIT = 9
};

/* The meaning of a group of the schema in a row. */
enum pq_kind { PQ_STRUCT, PQ_LIST, PQ_MAP };

/* An element of the schema, in depth-first order: its children follow it, up to `end`. */
struct pq_node {
    char *name;
    int repetition, children, end;
    int max_rep, max_def; /* levels at which it is present */
    int leaf;             /* number of the column; for a group, of the first column below */
    int leaves;           /* number of columns below, or 1 */
    bool column;          /* whether it is a leaf */
    enum pq_kind kind;
    int physical, width; /* type of a column; width: bytes of a PQ_FIXED value */
    bool is_unsigned, refused;
};

struct pq_value {
    union {
        int64_t whole;
        double real;
        struct thrift_text text;
    } as;
};

/* The place of a column in a row group. */
struct pq_chunk {
    uint64_t at, bytes;
    int64_t values;
    int codec;
};

struct pq_buffer {
    unsigned char *at;
    size_t capacity;
};

/* The values of a page that are still to come. */
struct pq_values {
    int encoding;
    const unsigned char *at, *end;
    struct hybrid runs;       /* run of indices or booleans */
    uint64_t bit;             /* bit offset of plain booleans */
    struct delta whole, more; /* numbers or lengths; prefix lengths of PQ_DELTA_BYTES */
    struct pq_buffer text;    /* previous value of PQ_DELTA_BYTES */
    size_t text_bytes;        /* length of that value in bytes */
    /* PQ_SPLIT: number of values, whose bytes lie apart, and of those read */
    size_t count, taken;
};

/* A column that is being read. */
struct pq_column {
    const struct parquet *p;
    const struct pq_node *node;
    struct pq_chunk chunk; /* bytes of the pages that are still to come */
    struct pq_buffer raw, page, dictionary;
    struct pq_value *entry; /* entries of the dictionary */
    size_t entries;
    int64_t page_left; /* number of values left in the page, including nulls */
    struct hybrid rep_levels, def_levels;
    struct pq_values values;
    /* The place before the next value. */
    bool ended;
    int rep, def;
};

struct parquet {
    const struct data_file *f;
    unsigned char *footer; /* bytes of the footer, while it is read */
    struct pq_node *node;  /* node[0] is the root */
    int nodes;
    struct pq_column *column; /* one column for each leaf; only wanted columns have chunks */
    int columns;
    bool *wanted;           /* whether each leaf is wanted */
    struct pq_chunk *chunk; /* place of each column in each group, [groups, columns] */
    int64_t *group_rows;
    size_t groups, group; /* number of all row groups; index of the next one */
    int64_t rows_left;    /* number of rows left in the open group */
    int64_t row;          /* number of the row that is being read, from 1 */
    /* approximate bytes of the row's values as JSON; and of the values of all rows */
    size_t row_bytes, bytes;
    bool bad_text; /* whether a text of the row is not UTF-8 */
};

/* Refuse the file. */
int pq_bad(const struct parquet *p, const char *what);
int pq_no_memory(const struct parquet *p);
int pq_read_footer(struct parquet *p, const struct parquet_reader *reader);
bool pq_reserve(struct pq_buffer *b, size_t bytes);

/* Begin the column's chunk; the place is then before its first value. */
int pq_column_begin(struct pq_column *c);
/* Go past the place, whose value, if it has one, was read. */
int pq_column_next(struct pq_column *c);
void pq_column_free(struct pq_column *c);

/* Begin the values of a page, which lie from `at` up to `end`. */
int pq_values_begin(struct pq_column *c, int encoding, const unsigned char *at,
                    const unsigned char *end);
/* Read a value. A text is valid until the next one. */
int pq_value_next(struct pq_column *c, struct pq_value *out);
/* Read the entries of a dictionary, which lie in c->dictionary. */
int pq_dictionary_read(struct pq_column *c, size_t bytes, int64_t count);

#endif

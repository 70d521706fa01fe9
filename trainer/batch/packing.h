/* SPDX-License-Identifier: Apache-2.0
 *
 * packing.h: inside of data.c: the rows that a stream of tokens makes.
 */
#ifndef NOJIT_TRAINER_PACKING_H
#define NOJIT_TRAINER_PACKING_H

#include "batch/data.h"
#include "data/token_files.h"

/* A stretch of the stream that takes `inputs` positions of a row. The token after it is the target
 * of the last one. */
struct piece {
    int64_t first;
    int32_t inputs;
};

struct packed {
    int64_t rows;
    int64_t inputs;      /* number of positions of all rows that hold a token */
    int64_t first, last; /* wrapped: range of tokens of the stream, from first up to last */
    int32_t S;
    struct piece *piece; /* otherwise: pieces in the order of the stream */
    size_t count, capacity;
    int64_t *start; /* with several pieces per row: row r begins with piece start[r] */
    struct overlong_count overlong;
};

/* How rows are made. */
struct packing_rules {
    enum packing kind; /* not PACKING_AUTO */
    enum overlong overlong;
    int32_t S;
    bool once; /* whether a last row that is not full is kept */
};

/* Make rows of S positions from files that follow each other in the stream. No row at all is not an error. */
int packed_make(const struct segment *segments, size_t count, const struct packing_rules *rules,
                struct packed *out);
/* Pack pieces of these lengths, from 1 to S, as many in a row as fit; `first` of a piece is its number. */
int packed_lengths(const int32_t *inputs, size_t count, int32_t S, struct packed *out);
/* Write the sentence for users about documents that were too long; return NULL where there were none. */
const char *overlong_text(const struct overlong_count *n, int32_t S, char *out, size_t bytes);
void packed_free(struct packed *p);
int packed_pieces(const struct packed *p, int64_t row);
struct piece packed_piece(const struct packed *p, int64_t row, int i);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h: from paths to batches of token ids.
 */
#ifndef NOJIT_TRAINER_DATA_H
#define NOJIT_TRAINER_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch/source.h"
#include "data/file_rules.h"
#include "text/tokenizer.h"

/* How documents become rows of S positions. */
enum packing {
    PACKING_AUTO,    /* PACKING_BFD for data with prompts or conversations, else PACKING_WRAPPED */
    PACKING_WRAPPED, /* documents one after the other, cut where a row ends */
    /* whole documents where they fit, as many in a row as go in: best-fit decreasing */
    PACKING_BFD,
    PACKING_NONE /* each document in rows of its own, padded with ignored positions */
};

/* The treatment of a document that is longer than a row; wrapped rows cut all alike. */
enum overlong {
    OVERLONG_AUTO, /* a document that holds a prompt is cut, any other is split */
    OVERLONG_CUT,  /* cut at the end of a row; the rest is lost */
    OVERLONG_DROP,
    OVERLONG_SPLIT /* split over as many rows as it takes */
};
/* Counts of documents by their treatment. */
struct overlong_count {
    /* number of all documents; of those longer than a row, by treatment */
    int64_t documents, cut, dropped, split;
    int64_t empty;   /* number of dropped documents of which nothing trained would remain */
    int64_t lost;    /* number of tokens with a loss in the parts that were cut off or dropped */
    int64_t longest; /* number of tokens of the longest document */
};

struct data_options {
    const char *const *paths; /* files, folders of files or globs: .txt, .jsonl, token files */
    size_t path_count;
    /* weight of each path, which is then a source of its own (0 leaves it out); NULL: all paths are one stream; not
     * with `once` */
    const double *weights;
    enum packing packing;
    enum overlong overlong;
    int seq_len, batch_size; /* S, B of a micro-batch */
    int vocab_size;          /* number of ids; all must be below it */
    uint64_t seed;           /* seed of the order of the rows; 0 keeps the order of the files */
    struct row_rules rules;
    struct split_choice split;
    bool all_rows; /* whether the last wrapped row, which may not be full, is kept */
    bool once; /* evaluation: one pass; the last row and batch are padded with ignored positions */
};
struct data; /* all tokens, in files or encoded; rows of S positions, shuffled by seed anew each
                epoch */

/* The arrays that batches from files have. */
enum { DATA_ARRAYS = USE_FORWARD | USE_STEP };

/* Read and check everything (empty input, ids not below vocab_size, fewer tokens than one window, damaged files, .apr
 * by name). */
int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out);
/* Make data without files, for callers that ask for no rows. */
int data_none(int seq_len, struct data **out);
/* Return the batches of the data's rows; closing them closes the data. With `once` the pass is over when all rows have
 * come. */
struct batch_source *data_batches(struct data *d);
const struct passed_over *data_passed_over(const struct data *d);
/* Return the packing that was decided on, never PACKING_AUTO. */
enum packing data_packing(const struct data *d);
/* Write "3 of 200 documents are longer than ..."; return NULL where none is. */
const char *data_overlong_text(const struct data *d, char *out, size_t bytes);
void data_overlong(const struct data *d, struct overlong_count *out);
const struct row_notes *data_row_notes(const struct data *d);
/* Return whether a row is a conversation. */
bool data_chats(const struct data *d);
void data_close(struct data *d);
int64_t data_tokens(const struct data *d);
int64_t data_windows(const struct data *d); /* rows of one epoch */
double data_padding(const struct data *d);  /* share of an epoch's positions that hold no token */
uint64_t data_hash(const struct data *d); /* hash over each source's ids, however they are stored */

struct data_source {
    const char *name;     /* name as in the options; valid until data_close() */
    double weight;        /* share of the sum of all weights */
    int64_t tokens, rows; /* number of its tokens and rows */
    int64_t draws;        /* number of rows that it gives to an epoch */
};
/* A token of the stream, for display. */
struct data_token {
    int32_t id;
    bool begins;  /* whether it begins a document */
    bool trained; /* whether it has a loss as a target */
};
/* Read a token of all files, one after the other; `at` is below data_tokens(). */
int data_token(const struct data *d, int64_t at, struct data_token *out);
/* Return the number of pieces of a row, in the order of the files; and find where one is in the stream: its `inputs`
 * tokens take a position each. The token after them is the target of the last one. */
int data_pieces(const struct data *d, int64_t row);
void data_piece(const struct data *d, int64_t row, int piece, int64_t *first, int *inputs);
size_t data_sources(const struct data *d); /* 0 without weights */
void data_source(const struct data *d, size_t i, struct data_source *out);

#endif

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
    PACKING_WRAPPED, /* one after the other, cut where a row ends */
    PACKING_BFD,     /* whole where they fit, as many in a row as go in: best-fit decreasing */
    PACKING_NONE     /* each in rows of its own, padded with ignored positions */
};

/* The treatment of a document that is longer than a row; wrapped rows cut all alike. */
enum overlong {
    OVERLONG_AUTO, /* one that holds a prompt is cut, any other is split */
    OVERLONG_CUT,  /* at the end of a row; what comes after it is lost */
    OVERLONG_DROP,
    OVERLONG_SPLIT /* over as many rows as it takes */
};
/* Documents by what became of them. */
struct overlong_count {
    int64_t documents, cut, dropped, split; /* all there are; those longer than a row */
    int64_t empty;                          /* of those dropped: nothing trained would remain */
    int64_t lost;                           /* tokens with a loss, of those cut or dropped */
    int64_t longest;                        /* tokens of a document */
};

struct data_options {
    const char *const *paths; /* files, folders of files or globs: .txt, .jsonl, token files */
    size_t path_count;
    const double *weights; /* NULL: all paths are one stream; else one each: sources of their own,
                              of which 0 leaves one out; not with `once` */
    enum packing packing;
    enum overlong overlong;
    int seq_len, batch_size; /* S, B of a micro-batch */
    int vocab_size;          /* ids must lie below it */
    uint64_t seed;           /* order of the rows; 0 keeps the order of the files */
    struct row_rules rules;
    struct split_choice split;
    bool all_rows; /* the last wrapped row, which may not be full, is one, too */
    bool once; /* evaluation: one pass; the last row and batch are padded with ignored positions */
};
struct data; /* all tokens, in files or encoded; rows of S positions, shuffled by seed anew each
                epoch */

/* Arrays that batches of files have. */
enum { DATA_ARRAYS = USE_FORWARD | USE_STEP };

/* Reads and checks everything (empty input, ids beyond vocab_size, fewer tokens than one window,
 * damaged files, parquet and .apr by name). */
int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out);
/* Make data without files, whose rows nobody asks for. */
int data_none(int seq_len, struct data **out);
/* Return the batches of its rows, which close it. With `once` the pass is over when all rows have come. */
struct batch_source *data_batches(struct data *d);
const struct passed_over *data_passed_over(const struct data *d);
/* As decided: never PACKING_AUTO. */
enum packing data_packing(const struct data *d);
/* "3 of 200 documents are longer than ..."; NULL where none is. */
const char *data_overlong_text(const struct data *d, char *out, size_t bytes);
void data_overlong(const struct data *d, struct overlong_count *out);
const struct row_notes *data_row_notes(const struct data *d);
/* Whether a row is a conversation. */
bool data_chats(const struct data *d);
void data_close(struct data *d);
int64_t data_tokens(const struct data *d);
int64_t data_windows(const struct data *d); /* rows of one epoch */
double data_padding(const struct data *d);  /* share of an epoch's positions without a token */
uint64_t data_hash(const struct data *d);   /* over each source's ids, however they are stored */

struct data_source {
    const char *name;     /* as in the options; valid until data_close() */
    double weight;        /* of all weights, which sum to 1 */
    int64_t tokens, rows; /* that it has */
    int64_t draws;        /* rows that it gives to an epoch */
};
/* A token of the stream, as it is shown. */
struct data_token {
    int32_t id;
    bool begins;  /* a document */
    bool trained; /* has a loss as a target */
};
/* Tokens of all files, one after the other; `at` lies below data_tokens(). */
int data_token(const struct data *d, int64_t at, struct data_token *out);
/* Pieces of a row, in the order of the files; and where one lies in the stream, whose `inputs` tokens take a position
 * each. The token after them is the last one's target. */
int data_pieces(const struct data *d, int64_t row);
void data_piece(const struct data *d, int64_t row, int piece, int64_t *first, int *inputs);
size_t data_sources(const struct data *d); /* 0 without weights */
void data_source(const struct data *d, size_t i, struct data_source *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h: from paths to batches of token ids.
 */
#ifndef NOJIT_TRAINER_DATA_H
#define NOJIT_TRAINER_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch/batch.h"
#include "data/file_rules.h"
#include "text/tokenizer.h"

struct group;

/* How documents become rows of S positions. */
enum packing {
    PACKING_AUTO,    /* PACKING_BFD for data with prompts or conversations, else PACKING_WRAPPED */
    PACKING_WRAPPED, /* one after the other, cut where a row ends */
    PACKING_BFD,     /* whole where they fit, as many in a row as go in: best-fit decreasing */
    PACKING_NONE     /* each in rows of its own, padded with ignored positions */
};

/* What becomes of a document that is longer than a row; wrapped rows cut all alike. */
enum overlong {
    OVERLONG_AUTO, /* one that holds a prompt is cut, any other is split */
    OVERLONG_CUT,  /* at the end of a row; what comes after it is lost */
    OVERLONG_DROP,
    OVERLONG_SPLIT /* over as many rows as it takes */
};
/* What became of them. */
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
    bool teacher_apart; /* batches say what the teacher reads, which may be something else */
    bool all_rows;      /* the last wrapped row, which may not be full, is one, too */
    bool once; /* evaluation: one pass; the last row and batch are padded with ignored positions */
};
struct data; /* all tokens, in files or encoded; rows of S positions, shuffled by seed anew each
                epoch */

/* Resumable position: the same state and options give the same batches. */
struct data_state {
    uint64_t epoch, window;
};

/* Reads and checks everything (empty input, ids beyond vocab_size, fewer tokens than one window,
 * damaged files, parquet and .apr by name). */
int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out);
/* Of all ranks of a group: from here on rank 0 alone reads. *d: opened by rank 0 with these options, NULL on the
 * others, which get theirs. Batch b from data_seek() on goes to rank b mod their number; of those of others a rank
 * learns how many targets they have. All ask in the same order. What fails on rank 0 fails on all, as NJ_ELSEWHERE. */
int data_share(struct data **d, const struct data_options *o, struct group *g);
/* Of all ranks of a group, each of which has opened the same data for itself. */
void data_read_alike(struct data *d, struct group *g);
/* Of such ranks, all of which ask: rc, or NJ_ELSEWHERE where another one, which says why, could not read (rc < 0). */
int data_agree(struct data *d, int rc);
/* Of rank 0: what it asks for from here on is for itself, or for all again. */
void data_alone(struct data *d, bool alone);
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
/* Batches of another size from here on; the position stays. */
int data_set_batch(struct data *d, int batch_size);
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
/* Next micro-batch, which is valid until the next call; with `once`, returns 1 when the pass is over (0: got one, negative: error). */
int data_next(struct data *d, struct batch *out);
/* Of the `count` rows that come next, those that `own` says are these, one after the other, then empty ones; both stay
 * the caller's, until so many rows are past. */
void data_take(struct data *d, const struct batch *rows, const unsigned char *own, int64_t count);
/* Of no files at all: each row is one that data_take() has given. */
int data_none(const struct data_options *o, struct data **out);
void data_tell(const struct data *d, struct data_state *out);
void data_seek(struct data *d, const struct data_state *s);

#endif

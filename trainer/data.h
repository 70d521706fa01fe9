/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h: from paths to batches of token ids.
 */
#ifndef NOJIT_TRAINER_DATA_H
#define NOJIT_TRAINER_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer.h"

#define IGNORED (-100) /* target of a position that has no loss */

/* ---- token streams ---- */
struct data_options {
    const char *const *paths; /* files, folders of files or globs: .txt, .jsonl, token files */
    size_t path_count;
    int seq_len, batch_size; /* S, B of a micro-batch */
    int vocab_size;          /* ids must lie below it */
    uint64_t seed;           /* order of the windows; 0 keeps the order of the files */
    bool once; /* evaluation: one pass; the last window and batch are padded with ignored positions
                */
};
struct data; /* all tokens, mapped or encoded; windows of S+1 tokens, shuffled by seed anew each
                epoch */

struct batch { /* B x S, row-major; owned by data, valid until the next call */
    int B, S;
    const int32_t *ids, *target, *pos, *doc_start;
    int64_t valid; /* targets that are not IGNORED */
};

/* Resumable position: the same state and options give the same batches. */
struct data_state {
    uint64_t epoch, window;
};

/* Reads and checks everything (empty input, ids beyond vocab_size, fewer tokens than one window,
 * damaged files, parquet and .apr by name). */
int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out);
void data_close(struct data *d);
int64_t data_tokens(const struct data *d);
int64_t data_windows(const struct data *d); /* of one epoch */
uint64_t data_hash(const struct data *d);   /* over the token ids, however they are stored */
/* Next micro-batch; with `once`, returns 1 when the pass is over (0: got one, negative: error). */
int data_next(struct data *d, struct batch *out);
void data_tell(const struct data *d, struct data_state *out);
void data_seek(struct data *d, const struct data_state *s);

#endif

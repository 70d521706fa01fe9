/* SPDX-License-Identifier: Apache-2.0
 *
 * token_files.h: one file of data as ids.
 */
#ifndef NOJIT_TRAINER_TOKEN_FILES_H
#define NOJIT_TRAINER_TOKEN_FILES_H

#include "data/data_file.h"
#include "data/file_rules.h"
#include "text/tokenizer.h"

/* The ids of one file: read from the file, which stays open, or encoded in memory. */
struct segment {
    char *path;
    int64_t first, count; /* first id in the stream of all files; number of ids */
    int id_bytes;         /* bytes of an id: 2: uint16_t, 4: int32_t */
    struct data_file file;
    size_t ids_at,
        mask_at; /* byte offsets; bit i % 8 of byte i / 8: id i has a loss as target; 0: all do */
    void *owned; /* encoded ids, or NULL */
    uint8_t *owned_mask;
    uint8_t
        *owned_ends; /* bit i % 8 of byte i / 8: id i ends a document; NULL: every end_of_text */
    size_t capacity; /* number of ids that owned, owned_mask and owned_ends have room for */
    int32_t end_of_text;           /* id that ends a document; -1: only the end of the file does */
    const struct row_rules *rules; /* rules for a file with rows; NULL: the defaults */
    struct row_notes *notes;       /* notes about the rows, which are added to; NULL: nobody asks */
    bool answers;                  /* whether a row has a part that is an answer to another */
    bool chats;                    /* whether a row is a conversation */
};

/* Open s->path and fill the rest of s except first, rules and notes. An empty text file has count 0. */
int segment_open(struct segment *s, const struct tokenizer *t);
void segment_close(struct segment *s); /* frees path, too */
/* Flags of a token next to its id. The last token of a file ends a document. */
enum token_flag { TOKEN_TRAINED = 1, TOKEN_ENDS = 2 };
/* Read n ids from `first` on, with the flags of each. */
int segment_read(const struct segment *s, int64_t first, size_t n, int32_t *ids,
                 unsigned char *flags);
/* Refuse ids that are not below vocab_size. */
int segment_check(const struct segment *s, int64_t first, size_t n, const int32_t *ids,
                  int vocab_size);
/* Visit all ids in order, some at a time; each must be below vocab_size. */
typedef int segment_visit(void *user, const int32_t *ids, const unsigned char *flags, size_t n);
int segment_scan(const struct segment *s, int vocab_size, segment_visit *visit, void *user);

/* ---- files of text: encoded from s->file ---- */
int open_text(struct segment *s, const struct tokenizer *t);
int open_rows(struct segment *s, const struct tokenizer *t);
/* Begin a text: the common first part of open_text() and open_rows(). */
int segment_begin_text(struct segment *s, const struct tokenizer *t);
/* Append ids of an encoded text; loss: whether they have one as targets. */
int segment_add(struct segment *s, const int32_t *ids, size_t count, bool loss);
/* End a document with id `at`, which was added. From the first call on, no id ends one by itself. */
int segment_end_document(struct segment *s, int64_t at);

/* The paths of a list of files, folders and globs: sorted within each, in the order of the list. */
struct file_list {
    char **path;
    size_t count, capacity;
};
/* Collect the files that the paths name. Files in folders that are not data are counted in passed (or NULL). */
int files_collect(const char *const *given, size_t count, const struct split_choice *split,
                  struct file_list *out, struct passed_over *passed);
/* Keep one split of the files of a folder, which are those from `from` on, if it has several. */
int splits_choose(const char *dir, struct file_list *files, size_t from,
                  const struct split_choice *choice, struct passed_over *passed);
void files_free(struct file_list *list);

#endif

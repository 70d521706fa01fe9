/* SPDX-License-Identifier: Apache-2.0
 *
 * file_rules.h: how files of data are found and read, and what of them was not used.
 */
#ifndef NOJIT_TRAINER_FILE_RULES_H
#define NOJIT_TRAINER_FILE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How rows are read: the lines of .jsonl files, the rows of Parquet. */
struct row_rules {
    const char *const *fields; /* words of --fields: "prompt=question,completion=answer" */
    size_t field_count;
    bool train_on_prompts; /* what precedes an answer has a loss, too */
    bool skip_unusable;    /* a row that cannot be used is counted, not an error */
};
/* What is to be said of rows that were read. */
struct row_notes {
    int64_t rows, unusable;
    char first[512]; /* the sentence about the first that could not be used */
    size_t columns;  /* that hold something and are not read */
    char column[16][48];
    bool more; /* and others */
};

/* Splits of a data set that may lie in one folder. */
enum data_split { SPLIT_AUTO, SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_TEST };
/* Which one is read of a folder that has several. */
struct split_choice {
    enum data_split wanted;  /* SPLIT_AUTO: none, such a folder is refused */
    enum data_split instead; /* where there is none of those */
};

/* Files of folders that are no data, by the endings of their names. */
struct passed_over {
    bool jsonl_alone; /* a file that is named is no text either */
    size_t files, kinds;
    struct {
        char ending[16];
        size_t files;
    } kind[8];
    char split[320]; /* what is to be said of a folder with several splits, or "" */
};
/* "2 files passed over (.md 1, .py 1); name a file to have it read as text", without the advice where .jsonl alone is
 * read; NULL if there is none. */
const char *passed_over_text(const struct passed_over *p, char *out, size_t bytes);
/* "columns not read: id, source"; NULL if there is none. */
const char *row_columns_text(const struct row_notes *n, char *out, size_t bytes);
/* "2 of 10 rows could not be used and were left out; the first: ..."; NULL if there is none. */
const char *row_unusable_text(const struct row_notes *n, char *out, size_t bytes);
/* Refuses an output in a folder, or in one that a pattern names, of these paths; option: whose they are. */
int data_check_output(const char *const *given, size_t count, const char *option, const char *out);

#endif

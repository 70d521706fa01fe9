/* SPDX-License-Identifier: Apache-2.0
 *
 * file_rules.h: how files of data are found and read, and which parts of them were not used.
 */
#ifndef NOJIT_TRAINER_FILE_RULES_H
#define NOJIT_TRAINER_FILE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How rows are read: the lines of .jsonl files and the rows of Parquet files. */
struct row_rules {
    const char *const *fields; /* words of --fields: "prompt=question,completion=answer" */
    size_t field_count;
    bool train_on_prompts; /* whether the text before an answer has a loss, too */
    bool skip_unusable;    /* whether a row that cannot be used is counted rather than an error */
};
/* Notes about the rows that were read. */
struct row_notes {
    int64_t rows, unusable;
    char first[512]; /* sentence about the first row that could not be used */
    size_t columns;  /* number of columns that hold something but are not read */
    char column[16][48];
    bool more; /* whether there are more columns than `column` has room for */
};

/* Splits of a data set that may lie in one folder. */
enum data_split { SPLIT_AUTO, SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_TEST };
/* The split that is read from a folder with several. */
struct split_choice {
    /* split that is read; SPLIT_AUTO: none, so that such a folder is refused */
    enum data_split wanted;
    enum data_split instead; /* split that is read where the wanted one is absent */
};

/* Files in folders that are not data, by the endings of their names. */
struct passed_over {
    bool jsonl_alone; /* whether even a file that the user names is not read as text */
    size_t files, kinds;
    struct {
        char ending[16];
        size_t files;
    } kind[8];
    char split[320]; /* sentence about a folder with several splits, or "" */
};
/* Write "2 files skipped (.md 1, .py 1); name a file to have it read as text", without the advice where .jsonl
 * alone is read; return NULL if no file was skipped. */
const char *passed_over_text(const struct passed_over *p, char *out, size_t bytes);
/* Write "columns not read: id, source"; return NULL if there are none. */
const char *row_columns_text(const struct row_notes *n, char *out, size_t bytes);
/* Write "2 of 10 rows could not be used and were left out; the first: ..."; return NULL if there are none. */
const char *row_unusable_text(const struct row_notes *n, char *out, size_t bytes);
/* Refuse an output in a folder that one of these paths is, or that a pattern among them names; option: the option that
 * gave the paths. */
int data_check_output(const char *const *given, size_t count, const char *option, const char *out);

#endif

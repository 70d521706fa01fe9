/* SPDX-License-Identifier: Apache-2.0
 *
 * util.h: what every part of gen uses: memory that lives to the end of the program, problems found
 * in the input, text under construction and files that are only touched when their content changes.
 */
#ifndef GEN_PUT_H
#define GEN_PUT_H

#include <stdbool.h>
#include <stddef.h>

/* Allocate zeroed memory that release() frees. Running out of memory ends the program. */
void *keep(size_t bytes);
char *keep_text(const char *s, size_t length);
char *keep_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void release(void);

/* Report "file:line: sentence" on stderr (without the line if it is 0); only the first 20 are printed. */
void problem(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int problem_count(void);
/* Return the name that is close to word in spelling, or NULL. */
const char *near_miss(const char *word, const char *const *names, int count);

struct text {
    char *s;
    size_t length, capacity;
};
void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append word after a space, or on a new line indented by `indent` if it would pass column 100. */
void put_word(struct text *t, int indent, const char *word);
/* Append s, escaped for a C string, a comment, or a cell of a Markdown table. */
void put_quoted(struct text *t, const char *s);
void put_comment(struct text *t, const char *s);
/* Print s wrapped, as a paragraph of a comment; further lines start with `margin` spaces, " *" and `indent` spaces. */
void put_paragraph(struct text *t, int margin, int indent, const char *s);
void put_cell(struct text *t, const char *s);

/* Make the folder and its parents. Returns 0, or -1 with a message on stderr. */
int make_folder(const char *path);
/* Write dir/name through a temporary file and rename, unless it holds this text already (`always`: even then).
 * Empties t. Returns 0, or -1 with a message on stderr. */
int put_file(const char *dir, const char *name, struct text *t, bool always);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.h: JSON input and output: files and lines with an error sentence for each fault, and
 * arbitrary bytes as a string.
 */
#ifndef NOJIT_TRAINER_JSON_TEXT_H
#define NOJIT_TRAINER_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Return the text as a JSON string, or NULL if memory runs out. Invalid UTF-8 becomes U+FFFD:
 * one for each truncated code point, otherwise one for each byte. */
json_t *json_text(const char *text, size_t bytes);
static inline json_t *json_c_text(const char *text)
{
    return json_text(text, strlen(text));
}

/* Read JSON: json_read_file() a regular file of at most 16 MiB; json_read_optional() the same,
 * but *out is NULL if there is no file; json_read_table() a file of at most 256 MiB (a
 * tokenizer, the index of many tensors); json_read_text() text in memory, which error sentences
 * call `where`. Error sentences end with the remedy. Files are read as Python's json module
 * reads them: the last of two equal keys counts, a byte order mark is skipped, a number beyond
 * 64 bits is a float, and Infinity and NaN are strings that no reader of numbers accepts
 * (python_json.h). Input that needs far more memory than its text is refused. Return 0, NJ_E_IO,
 * NJ_E_FORMAT, or NJ_E_NOMEM, which Jansson itself reports as an error in the text. */
int json_read_file(const char *path, const char *remedy, json_t **out);
int json_read_optional(const char *path, const char *remedy, json_t **out);
int json_read_table(const char *path, const char *remedy, json_t **out);
int json_read_text(const char *where, const char *text, size_t bytes, size_t flags,
                   const char *remedy, json_t **out);
/* Bracket calls of Jansson in one thread; json_memory_end() returns whether any allocation was
 * refused. Jansson silently leaves out some of the values that it cannot store and fails on
 * them later, so after the first refusal all allocations are refused until the end. */
void json_memory_begin(void);
/* Begin as json_memory_begin() does, for a text of the given size; values that need far more
 * memory than the text are refused, too. */
void json_memory_limit(size_t bytes);
bool json_memory_end(void);
bool json_memory_spent(void); /* whether that limit was the reason */

/* Return a value as JSON text for messages and files, which the caller frees, or NULL if memory
 * runs out. */
char *json_shown(const json_t *value, size_t flags);
/* Write a value as a file, or as a line of a file that error sentences call `where`. Numbers
 * read back unchanged, and no file is left if writing it fails. Each write is checked; Jansson
 * ignores some failed writes when it writes to a file itself. Both free the value and end what
 * json_memory_begin() began. Return 0, NJ_E_IO or NJ_E_NOMEM. */
int json_write_file(const char *path, json_t *value, size_t flags);
int json_write_line(FILE *f, const char *where, json_t *value, size_t flags);

#endif

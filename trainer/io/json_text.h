/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.h: JSON in and out: files and lines with sentences for what is wrong, and bytes of any kind as
 * a string.
 */
#ifndef NOJIT_TRAINER_JSON_TEXT_H
#define NOJIT_TRAINER_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns the text as JSON. Invalid UTF-8 becomes U+FFFD: one for each truncated code point, otherwise one for each
 * byte. NULL without memory. */
json_t *json_text(const char *text, size_t bytes);
static inline json_t *json_c_text(const char *text)
{
    return json_text(text, strlen(text));
}

/* Read a regular file of at most 16 MiB, the same where there may be none (*out is then NULL), one of at most
 * 256 MiB (a tokenizer, the index of many tensors), or text that lies in memory; where: its name in the
 * sentence, which ends with the remedy. Files are read as Python's json module reads them: the last of two equal
 * keys counts, a byte order mark is skipped, a number beyond 64 bits is a float, and Infinity and NaN are texts
 * that no reader of numbers takes (python_json.h). What takes much more memory than text does is refused.
 * Return 0, NJ_E_IO, NJ_E_FORMAT, or NJ_E_NOMEM, which Jansson itself tells as a fault of the text. */
int json_read_file(const char *path, const char *remedy, json_t **out);
int json_read_optional(const char *path, const char *remedy, json_t **out);
int json_read_table(const char *path, const char *remedy, json_t **out);
int json_read_text(const char *where, const char *text, size_t bytes, size_t flags,
                   const char *remedy, json_t **out);
/* Around calls of Jansson in one thread: end says whether any was refused memory. Jansson leaves some
 * of what it cannot store out in silence and then trips over it; so the first refusal is followed by
 * others until the end. */
void json_memory_begin(void);
/* The same for a text of so many bytes: what takes much more memory than text does is refused, too. */
void json_memory_limit(size_t bytes);
bool json_memory_end(void);
bool json_memory_spent(void); /* whether that was the reason */

/* Returns a value as JSON for messages and files, to be freed, or NULL without memory. */
char *json_shown(const json_t *value, size_t flags);
/* Write a value as a file, whose numbers read back as they are and which is not there if that fails, or as a line
 * of a file that `where` names. Each write is checked; Jansson, writing to a file itself, passes over the failure of
 * some. They free the value, and end what json_memory_begin() began. Return 0, NJ_E_IO or NJ_E_NOMEM. */
int json_write_file(const char *path, json_t *value, size_t flags);
int json_write_line(FILE *f, const char *where, json_t *value, size_t flags);

#endif

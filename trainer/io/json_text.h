/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.h: JSON in and out: files and lines with sentences for what is wrong, and bytes of any kind as
 * a string.
 */
#ifndef NOJIT_TRAINER_JSON_TEXT_H
#define NOJIT_TRAINER_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/* Each byte that is no part of UTF-8 becomes U+FFFD. NULL without memory. */
json_t *json_text(const char *text, size_t bytes);
static inline json_t *json_c_text(const char *text)
{
    return json_text(text, strlen(text));
}

/* Reads a regular file of at most 16 MiB, one of at most 256 MiB (a tokenizer, the index of many tensors), or
 * text that lies in memory; where: its name in the sentence, which ends with the remedy. What takes much more
 * memory than text does is refused. Returns 0, NJ_E_IO, NJ_E_FORMAT, or NJ_E_NOMEM, which Jansson itself
 * tells as a fault of the text. */
int json_read_file(const char *path, size_t flags, const char *remedy, json_t **out);
int json_read_table(const char *path, size_t flags, const char *remedy, json_t **out);
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

#endif

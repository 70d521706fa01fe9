/* SPDX-License-Identifier: Apache-2.0
 *
 * spaces.h: white space around a text, as Python's strip() sees it.
 */
#ifndef NOJIT_TRAINER_SPACES_H
#define NOJIT_TRAINER_SPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool is_white(uint32_t cp);
/* Bytes of the white space at the start of the text. */
size_t text_white(const char *text, size_t bytes);
/* Bytes of the text without the white space at its end. */
size_t text_rstrip(const char *text, size_t bytes);
/* The text without white space on both sides. */
void text_strip(const char **text, size_t *bytes);

#endif

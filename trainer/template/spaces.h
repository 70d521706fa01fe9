/* SPDX-License-Identifier: Apache-2.0
 *
 * spaces.h: white space around a text, as Python's strip() defines it.
 */
#ifndef NOJIT_TRAINER_SPACES_H
#define NOJIT_TRAINER_SPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool is_white(uint32_t cp);
/* Return the number of bytes of white space at the start of the text. */
size_t text_white(const char *text, size_t bytes);
/* Return the number of bytes of the text without the white space at its end. */
size_t text_rstrip(const char *text, size_t bytes);
/* Strip white space from both sides of the text. */
void text_strip(const char **text, size_t *bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.h: bytes of any kind as a JSON string.
 */
#ifndef NOJIT_TRAINER_JSON_TEXT_H
#define NOJIT_TRAINER_JSON_TEXT_H

#include <jansson.h>

/* Each byte that is no part of UTF-8 becomes U+FFFD. NULL without memory. */
json_t *json_text(const char *text, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_folder.h: where what may be lost is kept between runs. It is believed when it comes back: that a device has
 * passed its tests, what its driver compiled.
 */
#ifndef NOJIT_TRAINER_CACHE_FOLDER_H
#define NOJIT_TRAINER_CACHE_FOLDER_H

#include <stddef.h>

/* $XDG_CACHE_HOME/nojit or ~/.cache/nojit, of which what writes there makes the last two folders; "" if neither
 * variable is an absolute path, or if others can write there or have written: then *why is a sentence, else "". */
void cache_folder(char *out, size_t bytes, char *why, size_t why_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_folder.h: the folder of results kept between runs, which may be lost at any time. Its
 * files are trusted when they are read again: that a device has passed its tests, code that its
 * driver compiled.
 */
#ifndef NOJIT_TRAINER_CACHE_FOLDER_H
#define NOJIT_TRAINER_CACHE_FOLDER_H

#include <stddef.h>

/* Write the path of the cache folder to out: $XDG_CACHE_HOME/nojit or ~/.cache/nojit, whose last
 * two folders are created by the code that writes there. If neither variable is an absolute
 * path, or if other users can write there or have written there, the path is "" and *why is a
 * sentence; otherwise *why is "". */
void cache_folder(char *out, size_t bytes, char *why, size_t why_bytes);

#endif

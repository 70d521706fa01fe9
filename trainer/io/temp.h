/* SPDX-License-Identifier: Apache-2.0
 *
 * temp.h: files and folders that are being written, under names of base/temp_name.h. Signals that ask a process to end
 * remove them (unfinished.h), until their owner reports that they were renamed or removed.
 */
#ifndef NOJIT_TRAINER_TEMP_H
#define NOJIT_TRAINER_TEMP_H

#include <stddef.h>

/* Create a new file, open for writing, or a new folder, and write its name to temp. Return the
 * descriptor (0 for a folder), or -1 with errno set and an empty name. */
int temp_file(const char *path, char *temp, size_t bytes);
int temp_folder(const char *path, char *temp, size_t bytes);

#endif

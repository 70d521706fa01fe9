/* SPDX-License-Identifier: Apache-2.0
 *
 * temp.h: names of what is being written: PATH.tmp-N, N standing for this process. A process that was killed
 * leaves them, and in a container the next one may have its number: then N is another. Signals that ask a process
 * to end remove them (unfinished.h), until their maker says that they have another name or are gone.
 */
#ifndef NOJIT_TRAINER_TEMP_H
#define NOJIT_TRAINER_TEMP_H

#include <stddef.h>

/* Makes a file, open to be written, or a folder, that was not there; temp: its name. Returns the descriptor
 * (0 for a folder), or -1 with errno and no name. */
int temp_file(const char *path, char *temp, size_t bytes);
int temp_folder(const char *path, char *temp, size_t bytes);
/* The process that N stands for. */
long temp_process(long n);

#endif

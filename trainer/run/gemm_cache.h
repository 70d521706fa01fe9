/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_cache.h: the file that keeps algorithms of matrix products between runs.
 */
#ifndef NOJIT_TRAINER_GEMM_CACHE_H
#define NOJIT_TRAINER_GEMM_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "nojit.h"

/* Return whether a file is to be used. wanted: the value of --gemm-table ("auto", "none" or a file), or NULL. */
bool gemm_table_wanted(const char *wanted);
/* Write the path of the file. For "auto" it is named by device and library and lies in $XDG_CACHE_HOME/nojit or
 * ~/.cache/nojit, which is created. "": there is none. */
void gemm_table_path(const char *wanted, const struct nj_device_info *d, char *out, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_cache.h: the file that keeps algorithms of matrix products between runs.
 */
#ifndef NOJIT_TRAINER_GEMM_CACHE_H
#define NOJIT_TRAINER_GEMM_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "nojit.h"

/* wanted is what --gemm-table says, or NULL: "auto", "none" or a file. */
bool gemm_table_wanted(const char *wanted);
/* The file: for "auto" by device and library in $XDG_CACHE_HOME/nojit or ~/.cache/nojit, whose folder
 * is made. "" where there is none. */
void gemm_table_path(const char *wanted, const struct nj_device_info *d, char *out, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_cache.h: where the algorithms of matrix products are kept between runs.
 */
#ifndef NOJIT_TRAINER_GEMM_CACHE_H
#define NOJIT_TRAINER_GEMM_CACHE_H

#include <stddef.h>

#include "nojit.h"

/* File for this device and library in $XDG_CACHE_HOME/nojit or ~/.cache/nojit, whose folder is made;
 * "" if there is no such place. */
void gemm_cache_path(const struct nj_device_info *d, char *out, size_t bytes);

#endif

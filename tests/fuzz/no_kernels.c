/* SPDX-License-Identifier: Apache-2.0
 *
 * no_kernels.c: an empty table of kernels, for targets that launch none.
 */
#include "internal.h"

const struct nj_kernel nj_kernels[1];
const uint32_t nj_kernel_count = 0;

/* SPDX-License-Identifier: Apache-2.0
 *
 * merge.h: adds adapters to the weights of their model.
 */
#ifndef NOJIT_TRAINER_MERGE_H
#define NOJIT_TRAINER_MERGE_H

#include <stddef.h>

/* Write the folder OUT, which must not exist: the model of `base` with W + alpha / r B A in place of each W that
 * has an adapter in `adapters`. The sum is computed in float32 and rounded once, to the type of W; all else is
 * copied. *merged: number of adapters merged. */
int merge_adapters(const char *base, const char *adapters, const char *out, size_t *merged);

#endif

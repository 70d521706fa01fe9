/* SPDX-License-Identifier: Apache-2.0
 *
 * hash_tensors.h: the hash of opened weights, in one thread.
 */
#ifndef NOJIT_TESTS_HASH_TENSORS_H
#define NOJIT_TESTS_HASH_TENSORS_H

#include "formats/tensor_hash.h"

#include <stdlib.h>

static inline uint64_t hash_tensors(const struct tensors *w)
{
    struct tensor_hashes h;
    if (tensor_hashes_begin(w, &h) != 0)
        abort();
    for (size_t i = 0; i < w->count; i++)
        for (size_t c = 0; c < tensor_chunks(&w->tensor[i]); c++)
            tensor_hashes_chunk(&h, i, c, NULL, NULL);
    const uint64_t value = tensor_hashes_value(&h);
    tensor_hashes_end(&h);
    return value;
}

#endif

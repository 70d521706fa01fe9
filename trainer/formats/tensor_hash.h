/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_hash.h: the hash of a model's weights: XXH3-64 over names, types, shapes and the hashes of 4 MiB chunks of the
 * data, in name order. The same weights give the same value however they are sharded, and in whichever order, and by
 * however many threads, their chunks are hashed.
 */
#ifndef NOJIT_TRAINER_TENSOR_HASH_H
#define NOJIT_TRAINER_TENSOR_HASH_H

#include "formats/tensors.h"

#include <stdbool.h>

#define TENSOR_CHUNK_BYTES ((size_t)4 << 20)

struct tensor_hashes {
    const struct tensors *w;
    size_t *first;  /* of each tensor, its first chunk */
    uint64_t *part; /* of each chunk, its hash */
    bool *begun;    /* [count] for the caller: whether somebody sees to the tensor */
};

/* Returns 0 or NJ_E_NOMEM, with nothing left to end. */
int tensor_hashes_begin(const struct tensors *w, struct tensor_hashes *out);
/* 0 where a tensor has no bytes. */
size_t tensor_chunks(const struct tensor *t);
/* Several threads may hash several chunks. passed: NULL, or told how many bytes of how many have been hashed, a few
 * times: they are in the cache of this core then. A mapped file is slower to read again afterwards. */
typedef void tensor_passed(void *user, size_t bytes, size_t of);
void tensor_hashes_chunk(const struct tensor_hashes *h, size_t tensor, size_t chunk,
                         tensor_passed *passed, void *user);
/* The value, when all chunks of all tensors have been hashed. */
uint64_t tensor_hashes_value(const struct tensor_hashes *h);
void tensor_hashes_end(struct tensor_hashes *h);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_hash.h: the hash of a model's weights: XXH3-64 over names, types, shapes and the hashes
 * of 4 MiB chunks of the data, in name order. The same weights give the same value however they
 * are sharded, and in whatever order, and by however many threads, their chunks are hashed.
 */
#ifndef NOJIT_TRAINER_TENSOR_HASH_H
#define NOJIT_TRAINER_TENSOR_HASH_H

#include "formats/tensors.h"

#include <stdbool.h>

#define TENSOR_CHUNK_BYTES ((size_t)4 << 20)

struct tensor_hashes {
    const struct tensors *w;
    size_t *first;  /* index of the first chunk of each tensor */
    uint64_t *part; /* hash of each chunk */
    bool *begun;    /* [count] for the caller: whether a thread has taken the tensor */
};

/* Return 0, or NJ_E_NOMEM with nothing left to end. */
int tensor_hashes_begin(const struct tensors *w, struct tensor_hashes *out);
/* Return the number of chunks of a tensor; 0 if it has no bytes. */
size_t tensor_chunks(const struct tensor *t);
/* Hash one chunk; several threads may hash several chunks. passed, which may be NULL, is called
 * a few times with the number of bytes hashed so far and their total: these bytes are then in
 * the cache of this core. A mapped file is slower to read again afterwards. */
typedef void tensor_passed(void *user, size_t bytes, size_t of);
void tensor_hashes_chunk(const struct tensor_hashes *h, size_t tensor, size_t chunk,
                         tensor_passed *passed, void *user);
/* Return the hash, once all chunks of all tensors have been hashed. */
uint64_t tensor_hashes_value(const struct tensor_hashes *h);
void tensor_hashes_end(struct tensor_hashes *h);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_cache.h: a folder of what a teacher computed: hidden states behind its last norm, at positions that have a
 * target. It is also a model folder of the teacher (config.json, tokenizer, model.safetensors) with its LM head alone.
 * cache.json says whose hidden states these are, and how they are stored; it is there once all of that is.
 *
 * Hidden states are in shards, hidden-KEY.safetensors. A shard is self-contained, and any shard in the folder counts.
 * So several processes may add shards at once, and one that is killed leaves only complete shards.
 * Of d passages (passages.h) with t tokens and n targets in all, a shard has
 *
 *     key          U64 [d, 2]   keys of the passages
 *     first_row    U64 [d + 1]  first row of each, and the end
 *     first_token  U64 [d + 1]  first token of each, and the end
 *     check        U64 [d]      XXH3 of the rows of each, seeded by its key
 *     ids          I32 [t]      tokens, for other readers
 *     place        I32 [n]      place of each row in its passage, for other readers
 *     hidden       T [n, C]     a row for each target: the state from which the target is predicted
 */
#ifndef NOJIT_TRAINER_TEACHER_CACHE_H
#define NOJIT_TRAINER_TEACHER_CACHE_H

#include "base/tensor_type.h"
#include "io/path.h"
#include "teacher/passages.h"

#include <stddef.h>

/* The contents of cache.json. */
struct cache_facts {
    enum nj_tensor_type type; /* type of the hidden states: that of the run which computed them */
    int hidden_size, vocab_size;
    uint64_t teacher;  /* hash of the teacher's weights */
    uint64_t head;     /* hash of model.safetensors, which has its LM head */
    uint64_t config;   /* hash of the teacher's configuration */
    uint64_t rotation; /* hash of the frequencies of its rotations, which may depend on --seq-len */
    char source[PATH_BYTES]; /* the teacher, as its user named it */
};
/* Return whether the folder is a cache. */
bool cache_is_there(const char *dir);
int cache_facts_read(const char *dir, struct cache_facts *out);
/* Write cache.json into a folder that is not published yet. */
int cache_facts_write(const char *dir, const struct cache_facts *facts);
/* Return the bytes of a row. */
size_t cache_row_bytes(const struct cache_facts *facts);

struct teacher_cache;
/* Open a cache and list its passages. A shard that is not whole is refused. */
int cache_open(const char *dir, struct teacher_cache **out);
void cache_close(struct teacher_cache *c);
const char *cache_dir(const struct teacher_cache *c);
const struct cache_facts *cache_facts(const struct teacher_cache *c);
size_t cache_passages(const struct teacher_cache *c);
bool cache_has(const struct teacher_cache *c, struct passage_key key);
/* Copy the rows of a passage, which the cache has, to `to`. Refuse rows that do not have their hash. */
int cache_read(const struct teacher_cache *c, const struct passage *p, void *to);
/* Note a passage that is about to be written, so that cache_has() finds it. */
int cache_note(struct teacher_cache *c, struct passage_key key);

#endif

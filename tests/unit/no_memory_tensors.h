/* SPDX-License-Identifier: Apache-2.0
 *
 * no_memory_tensors.h: weights of a folder, and a cache of one hidden state, read while memory runs out.
 */
#ifndef NOJIT_TESTS_NO_MEMORY_TENSORS_H
#define NOJIT_TESTS_NO_MEMORY_TENSORS_H

#include "engine_fixture.h"
#include "formats/safetensors.h"
#include "teacher/cache_shard.h"

static inline int load_safetensors(void)
{
    struct tensors w;
    const int rc = st_open(path_of("teacher"), &w);
    if (rc == 0)
        tensors_close(&w);
    return rc;
}

static inline int load_shards(void)
{
    struct tensors w;
    const int rc = st_open(path_of("sharded"), &w);
    if (rc == 0)
        tensors_close(&w);
    return rc;
}

static inline int write_cache(void)
{
    const struct cache_facts facts = {
        .type = NJ_TYPE_F32, .hidden_size = 1, .vocab_size = 9, .source = "teacher"};
    const int32_t ids[] = {7}, zero[] = {0};
    const struct passage_rows rows = {ids, zero, zero, 1, 1};
    struct passage p = {0};
    struct cache_shard shard;
    (void)passage_next(&rows, &p);
    cache_shard_begin(&shard, path_of("cache"), &facts);
    int rc = cache_facts_write(path_of("cache"), &facts);
    if (rc == 0)
        rc = cache_shard_add(&shard, &rows, &p, (const char *)zero);
    if (rc == 0)
        rc = cache_shard_write(&shard);
    cache_shard_free(&shard);
    return rc;
}

static inline int load_cache(void)
{
    struct teacher_cache *c;
    const int rc = cache_open(path_of("cache"), &c);
    if (rc == 0)
        cache_close(c);
    return rc;
}

#endif

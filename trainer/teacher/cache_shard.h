/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_shard.h: the names in shards of a cache, which teacher_cache.h describes, and a writer of shards.
 */
#ifndef NOJIT_TRAINER_CACHE_SHARD_H
#define NOJIT_TRAINER_CACHE_SHARD_H

#include "teacher/teacher_cache.h"

#define CACHE_KEY "key"
#define CACHE_FIRST_ROW "first_row"
#define CACHE_FIRST_TOKEN "first_token"
#define CACHE_CHECK "check"
#define CACHE_IDS "ids"
#define CACHE_PLACE "place"
#define CACHE_HIDDEN "hidden"
/* A folder for the config.json of a teacher that is compared with a cache's. */
#define CACHE_CONFIG "config"

enum { CACHE_NAME_BYTES = 64 };

/* Return whether this is the name of a shard. */
bool cache_is_shard(const char *name);

/* Return the hash that a passage's rows must have. */
uint64_t cache_check(struct passage_key key, const void *rows, size_t bytes);

/* A shard in memory, to which passages are added until it is written. */
struct cache_shard {
    char dir[PATH_BYTES];
    struct cache_facts facts;
    size_t bytes; /* bytes of its rows */
    struct {
        char *data;
        size_t used, room;
    } part[7];              /* contents of its tensors (cache_shard.c) */
    uint64_t written_bytes; /* bytes of the files written so far */
    int64_t written;        /* number of the shards written so far */
};
void cache_shard_begin(struct cache_shard *s, const char *dir, const struct cache_facts *facts);
/* Add a passage of these rows of a micro-batch. hidden: the rows of all its targets. */
int cache_shard_add(struct cache_shard *s, const struct passage_rows *rows, const struct passage *p,
                    const char *hidden);
/* Write the shard, and begin the next one; do nothing if it is empty. */
int cache_shard_write(struct cache_shard *s);
void cache_shard_free(struct cache_shard *s);
/* Remove what processes of this host that have ended were writing into the folder; this one has not begun. */
void cache_remove_partial(const char *dir);

#endif

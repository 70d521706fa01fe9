/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_cache.c: see teacher_cache.h. A table of all passages is in memory; their rows are read from mapped files.
 */
#include "teacher/teacher_cache.h"

#include "base/grow.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "teacher/cache_shard.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The place of the rows of a passage. */
struct entry {
    uint64_t check;
    const char *rows; /* in a mapped file; NULL: they are being written */
    uint64_t count;
    size_t shard; /* number of the shard */
};
struct shard {
    char name[CACHE_NAME_BYTES];
    struct tensors file;
};
struct teacher_cache {
    char dir[PATH_BYTES];
    struct cache_facts facts;
    struct shard *shard;
    size_t shards, shard_room;
    struct passage_set keys;
    struct entry *entry; /* [keys.count] */
    size_t entry_room;
};

/* ---- the list of passages ---- */

static const struct entry *find(const struct teacher_cache *c, struct passage_key key)
{
    const int64_t found = passage_set_find(&c->keys, key);
    return found < 0 ? NULL : &c->entry[found];
}

/* Add a passage. One that is there already, in another shard, stays as it is. */
static int add(struct teacher_cache *c, struct passage_key key, const struct entry *e)
{
    const int added = passage_set_add(&c->keys, key);
    if (added <= 0)
        return added;
    if (!GROW(c->entry, c->entry_room, c->keys.count))
        return fail(NJ_E_NOMEM, "%s: no host memory for the list of %zu passages; free some",
                    c->dir, c->keys.count);
    c->entry[c->keys.count - 1] = *e;
    return 0;
}

/* ---- shards ---- */

static int refuse_shard(const struct teacher_cache *c, const char *name, const char *what)
{
    return fail(NJ_E_FORMAT,
                "%s/%s: %s; remove this file, and let `nojit cache` make its passages again",
                c->dir, name, what);
}

/* Find a tensor of a shard with these sizes; columns 0: it has one dimension. */
static const struct tensor *tensor_of(const struct shard *s, const char *name,
                                      enum nj_tensor_type type, int64_t rows, int64_t columns)
{
    const struct tensor *t = tensors_find(&s->file, name);
    const int rank = columns > 0 ? 2 : 1;
    return t && t->dtype == type && t->rank == rank && t->shape[0] == rows &&
                   (columns == 0 || t->shape[1] == columns)
               ? t
               : NULL;
}

static uint64_t number(const struct tensor *t, int64_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)t->data + (size_t)i * sizeof value, sizeof value);
    return value;
}

static int add_passages(struct teacher_cache *c, size_t number_of_shard)
{
    const struct shard *s = &c->shard[number_of_shard];
    const size_t row_bytes = cache_row_bytes(&c->facts);
    const struct tensor *first = tensors_find(&s->file, CACHE_FIRST_ROW);
    const int64_t d = first && first->rank == 1 ? first->shape[0] - 1 : -1;
    if (d < 0 || !tensor_of(s, CACHE_FIRST_ROW, (enum nj_tensor_type)ST_U64, d + 1, 0))
        return refuse_shard(c, s->name, "it is no shard of a cache");
    const int64_t n = (int64_t)number(first, d);
    const struct tensor *key = tensor_of(s, CACHE_KEY, (enum nj_tensor_type)ST_U64, d, 2);
    const struct tensor *check = tensor_of(s, CACHE_CHECK, (enum nj_tensor_type)ST_U64, d, 0);
    const struct tensor *rows = tensor_of(s, CACHE_HIDDEN, c->facts.type, n, c->facts.hidden_size);
    if (!key || !check || !rows)
        return refuse_shard(c, s->name, "its tensors are not those that cache.json describes");
    for (int64_t i = 0; i < d; i++) {
        const uint64_t from = number(first, i), end = number(first, i + 1);
        if (from > end || end > (uint64_t)n)
            return refuse_shard(c, s->name, "its passages have rows that it does not have");
        const struct passage_key of = {number(key, 2 * i), number(key, 2 * i + 1)};
        TRY(add(c, of,
                &(struct entry){.check = number(check, i),
                                .rows = (const char *)rows->data + from * row_bytes,
                                .count = end - from,
                                .shard = number_of_shard}));
    }
    return 0;
}

static int open_shard(struct teacher_cache *c, size_t number_of_shard)
{
    char path[PATH_BYTES + CACHE_NAME_BYTES];
    struct shard *s = &c->shard[number_of_shard];
    snprintf(path, sizeof path, "%s/%s", c->dir, s->name);
    const int rc = st_open_file_parts(path, &s->file);
    if (rc == NJ_E_FORMAT)
        return fail(rc, "%s; or remove this file, and let `nojit cache` make its passages again",
                    fail_text());
    return rc == 0 ? add_passages(c, number_of_shard) : rc;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct shard *)a)->name, ((const struct shard *)b)->name);
}

/* List the shards by their names, whose order does not depend on the file system. */
static int list_shards(struct teacher_cache *c)
{
    DIR *d = opendir(c->dir);
    const struct dirent *entry;
    int rc = d ? 0 : fail(NJ_E_IO, "%s: %s", c->dir, strerror(errno));
    while (rc == 0 && (entry = readdir(d)) != NULL) {
        if (!cache_is_shard(entry->d_name))
            continue;
        if (GROW(c->shard, c->shard_room, c->shards + 1)) {
            struct shard *s = &c->shard[c->shards++];
            *s = (struct shard){0};
            memcpy(s->name, entry->d_name, strlen(entry->d_name) + 1);
        } else {
            rc =
                fail(NJ_E_NOMEM, "%s: no host memory for %zu shards; free some", c->dir, c->shards);
        }
    }
    if (d)
        closedir(d);
    if (c->shards > 0)
        qsort(c->shard, c->shards, sizeof *c->shard, compare_names);
    return rc;
}

static int open_shards(struct teacher_cache *c)
{
    TRY(list_shards(c));
    for (size_t i = 0; i < c->shards; i++)
        TRY(open_shard(c, i));
    return 0;
}

int cache_open(const char *dir, struct teacher_cache **out)
{
    struct teacher_cache *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return fail(NJ_E_NOMEM, "%s: no host memory; free some", dir);
    snprintf(c->dir, sizeof c->dir, "%s", dir);
    int rc = cache_facts_read(dir, &c->facts);
    if (rc == 0)
        rc = open_shards(c);
    if (rc != 0)
        cache_close(c);
    else
        *out = c;
    return rc;
}

void cache_close(struct teacher_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->shards; i++)
        tensors_close(&c->shard[i].file);
    free(c->shard);
    free(c->entry);
    passage_set_free(&c->keys);
    free(c);
}

/* ---- reading ---- */

const char *cache_dir(const struct teacher_cache *c)
{
    return c->dir;
}

const struct cache_facts *cache_facts(const struct teacher_cache *c)
{
    return &c->facts;
}

size_t cache_passages(const struct teacher_cache *c)
{
    return c->keys.count;
}

bool cache_has(const struct teacher_cache *c, struct passage_key key)
{
    return passage_set_find(&c->keys, key) >= 0;
}

int cache_note(struct teacher_cache *c, struct passage_key key)
{
    return add(c, key, &(struct entry){0});
}

int cache_read(const struct teacher_cache *c, const struct passage *p, void *to)
{
    const struct entry *e = find(c, p->key);
    const size_t bytes = (size_t)p->targets * cache_row_bytes(&c->facts);
    if (!e || !e->rows)
        return fail(
            NJ_E_ARG,
            "%s: it has no hidden states for a passage of %d tokens; add them with nojit cache",
            c->dir, p->tokens);
    if (e->count != (uint64_t)p->targets)
        return refuse_shard(c, c->shard[e->shard].name, "a passage has another number of rows");
    memcpy(to, e->rows, bytes);
    if (cache_check(p->key, to, bytes) != e->check)
        return refuse_shard(c, c->shard[e->shard].name,
                            "it is damaged: the rows of a passage do not have their hash");
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_shard.c: see cache_shard.h. A shard is named after its keys: the same passages make the same file, whichever
 * process writes it.
 */
#include "teacher/cache_shard.h"

#include "base/grow.h"
#include "base/temp_name.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "io/model_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PREFIX "hidden-"
#define SUFFIX ".safetensors"

enum { HEX = 16 };
enum part { KEY, FIRST_ROW, FIRST_TOKEN, CHECK_SUMS, IDS, PLACE, HIDDEN, PARTS };

/* The tensors, in the order of the file: those of larger elements come first. */
static const struct {
    const char *name;
    int type; /* -1: that of the hidden states */
} parts[PARTS] = {
    [KEY] = {CACHE_KEY, ST_U64},
    [FIRST_ROW] = {CACHE_FIRST_ROW, ST_U64},
    [FIRST_TOKEN] = {CACHE_FIRST_TOKEN, ST_U64},
    [CHECK_SUMS] = {CACHE_CHECK, ST_U64},
    [IDS] = {CACHE_IDS, ST_I32},
    [PLACE] = {CACHE_PLACE, ST_I32},
    [HIDDEN] = {CACHE_HIDDEN, -1},
};

bool cache_is_shard(const char *name)
{
    const size_t prefix = strlen(PREFIX);
    return strncmp(name, PREFIX, prefix) == 0 && strspn(name + prefix, "0123456789abcdef") == HEX &&
           strcmp(name + prefix + HEX, SUFFIX) == 0;
}

uint64_t cache_check(struct passage_key key, const void *rows, size_t bytes)
{
    return XXH3_64bits_withSeed(rows, bytes, key.low ^ key.high);
}

/* ---- adding passages ---- */

static int put(struct cache_shard *s, enum part which, const void *data, size_t bytes)
{
    char **at = &s->part[which].data;
    if (!GROW(*at, s->part[which].room, s->part[which].used + bytes))
        return fail(NJ_E_NOMEM, "%s: no host memory for a shard; free some", s->dir);
    memcpy(*at + s->part[which].used, data, bytes);
    s->part[which].used += bytes;
    return 0;
}

static int put_number(struct cache_shard *s, enum part which, uint64_t value)
{
    return put(s, which, &value, sizeof value);
}

static uint64_t rows_in(const struct cache_shard *s)
{
    return s->part[HIDDEN].used / cache_row_bytes(&s->facts);
}

static uint64_t tokens_in(const struct cache_shard *s)
{
    return s->part[IDS].used / sizeof(int32_t);
}

void cache_shard_begin(struct cache_shard *s, const char *dir, const struct cache_facts *facts)
{
    *s = (struct cache_shard){.facts = *facts};
    snprintf(s->dir, sizeof s->dir, "%s", dir);
}

int cache_shard_add(struct cache_shard *s, const struct passage_rows *rows, const struct passage *p,
                    const char *hidden)
{
    const size_t bytes = (size_t)p->targets * cache_row_bytes(&s->facts);
    const uint64_t key[] = {p->key.low, p->key.high};
    TRY(put_number(s, FIRST_ROW, rows_in(s)));
    TRY(put_number(s, FIRST_TOKEN, tokens_in(s)));
    TRY(put(s, KEY, key, sizeof key));
    TRY(put_number(s, CHECK_SUMS, cache_check(p->key, hidden, bytes)));
    TRY(put(s, IDS, rows->ids + p->start, (size_t)p->tokens * sizeof *rows->ids));
    for (int i = 0; i < p->targets; i++) {
        const int32_t place = rows->valid[p->first + i] - p->start;
        TRY(put(s, PLACE, &place, sizeof place));
    }
    TRY(put(s, HIDDEN, hidden, bytes));
    s->bytes += bytes;
    return 0;
}

/* ---- writing ---- */

/* Describe a tensor by the bytes that it has. */
static struct st_declared declared(const struct cache_shard *s, enum part which)
{
    struct st_declared t = {.name = parts[which].name, .rank = 1, .shape = {0, 1}};
    t.dtype = parts[which].type < 0 ? s->facts.type : (enum nj_tensor_type)parts[which].type;
    if (which == KEY || which == HIDDEN) {
        t.rank = 2;
        t.shape[1] = which == KEY ? 2 : s->facts.hidden_size;
    }
    t.shape[0] = (int64_t)(s->part[which].used / st_type_bytes(t.dtype, t.shape[1]));
    return t;
}

static int write_parts(const struct cache_shard *s, struct st_writer *w)
{
    for (int i = 0; i < PARTS; i++)
        TRY(st_write_data(w, s->part[i].data, s->part[i].used));
    return 0;
}

static int write_file(struct cache_shard *s)
{
    char path[PATH_BYTES + CACHE_NAME_BYTES];
    struct st_declared tensor[PARTS];
    struct st_writer *w;
    snprintf(path, sizeof path, "%s/" PREFIX "%016" PRIx64 SUFFIX, s->dir,
             (uint64_t)XXH3_64bits(s->part[KEY].data, s->part[KEY].used));
    for (int i = 0; i < PARTS; i++)
        tensor[i] = declared(s, (enum part)i);
    TRY(st_write_begin(path, tensor, PARTS, &w));
    const int rc = write_parts(s, w);
    if (rc != 0) {
        st_write_abort(w);
        return rc;
    }
    TRY(st_write_end(w));
    return folder_flush_names(s->dir);
}

int cache_shard_write(struct cache_shard *s)
{
    if (s->part[KEY].used == 0)
        return 0;
    TRY(put_number(s, FIRST_ROW, rows_in(s)));
    TRY(put_number(s, FIRST_TOKEN, tokens_in(s)));
    TRY(write_file(s));
    for (int i = 0; i < PARTS; i++) {
        s->written_bytes += s->part[i].used;
        s->part[i].used = 0;
    }
    s->written++;
    s->bytes = 0;
    return 0;
}

void cache_shard_free(struct cache_shard *s)
{
    for (int i = 0; i < PARTS; i++)
        free(s->part[i].data);
    memset(s, 0, sizeof *s);
}

/* ---- what was left behind ---- */

/* Return the process that writes a shard or CACHE_CONFIG under this name, or 0. */
static long writer_of(const char *name)
{
    char plain[CACHE_NAME_BYTES];
    const char *mark = strstr(name, ".tmp-");
    char *end = NULL;
    if (mark == NULL || (size_t)(mark - name) >= sizeof plain)
        return 0;
    snprintf(plain, sizeof plain, "%.*s", (int)(mark - name), name);
    const long n = strtol(mark + strlen(".tmp-"), &end, 10);
    const bool ours = cache_is_shard(plain) || strcmp(plain, CACHE_CONFIG) == 0;
    return ours && *end == '\0' && n > 0 ? temp_process(n) : 0;
}

/* Remove a file, or a folder that has a config.json at most. */
static void remove_one(int folder, const char *name)
{
    char config[NAME_MAX + sizeof "/config.json"];
    if (unlinkat(folder, name, 0) == 0)
        return;
    snprintf(config, sizeof config, "%s/config.json", name);
    (void)unlinkat(folder, config, 0);
    (void)unlinkat(folder, name, AT_REMOVEDIR);
}

void cache_remove_partial(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;
    while (d && (entry = readdir(d)) != NULL) {
        const long pid = writer_of(entry->d_name);
        if (pid > 0 && (pid == (long)getpid() || (kill((pid_t)pid, 0) != 0 && errno == ESRCH)))
            remove_one(dirfd(d), entry->d_name);
    }
    if (d)
        closedir(d);
}

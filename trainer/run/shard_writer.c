/* SPDX-License-Identifier: Apache-2.0
 *
 * shard_writer.c: see shard_writer.h. Sentences of errors belong to a thread, so the writer's is copied.
 */
#include "run/shard_writer.h"

#include "io/error.h"

#include <stdio.h>

void shard_writer_begin(struct shard_writer *w, const char *dir, const struct cache_facts *facts)
{
    *w = (struct shard_writer){0};
    for (int i = 0; i < 2; i++)
        cache_shard_begin(&w->shard[i], dir, facts);
}

struct cache_shard *shard_writer_now(struct shard_writer *w)
{
    return &w->shard[w->now];
}

static void *write_other(void *writer)
{
    struct shard_writer *w = writer;
    w->rc = cache_shard_write(&w->shard[!w->now]);
    if (w->rc != 0)
        snprintf(w->why, sizeof w->why, "%s", fail_text());
    return NULL;
}

int shard_writer_wait(struct shard_writer *w)
{
    if (!w->runs)
        return 0;
    w->runs = false;
    (void)pthread_join(w->thread, NULL);
    return w->rc == 0 ? 0 : fail(w->rc, "%s", w->why);
}

int shard_writer_write(struct shard_writer *w)
{
    TRY(shard_writer_wait(w));
    w->now = !w->now;
    w->runs = pthread_create(&w->thread, NULL, write_other, w) == 0;
    return w->runs ? 0 : fail(NJ_E_NOMEM, "no thread for a file of hidden states; free memory");
}

int64_t shard_writer_files(const struct shard_writer *w)
{
    return w->shard[0].written + w->shard[1].written;
}

double shard_writer_bytes(const struct shard_writer *w)
{
    return (double)w->shard[0].written_bytes + (double)w->shard[1].written_bytes;
}

void shard_writer_end(struct shard_writer *w)
{
    (void)shard_writer_wait(w);
    for (int i = 0; i < 2; i++)
        cache_shard_free(&w->shard[i]);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * shard_writer.h: writes shards of a cache in a thread, each while the next one is filled.
 */
#ifndef NOJIT_TRAINER_SHARD_WRITER_H
#define NOJIT_TRAINER_SHARD_WRITER_H

#include "teacher/cache_shard.h"

#include <pthread.h>

struct shard_writer {
    struct cache_shard shard[2];
    int now; /* shard that is filled */
    pthread_t thread;
    bool runs;      /* the thread writes the other shard */
    int rc;         /* its result */
    char why[1024]; /* its sentence, if it has failed */
};
void shard_writer_begin(struct shard_writer *w, const char *dir, const struct cache_facts *facts);
/* Return the shard that is filled. */
struct cache_shard *shard_writer_now(struct shard_writer *w);
/* Wait for the shard that is written; return its error. Then begin to write the one that was filled. */
int shard_writer_write(struct shard_writer *w);
int shard_writer_wait(struct shard_writer *w);
/* Return the number of files written, and their bytes. */
int64_t shard_writer_files(const struct shard_writer *w);
double shard_writer_bytes(const struct shard_writer *w);
void shard_writer_end(struct shard_writer *w); /* w may be zeros */

#endif

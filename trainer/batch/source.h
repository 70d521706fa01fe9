/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h: the interface of all sources of micro-batches: files (data.h), answers of the student among other rows
 * (answers_source.h), or the rank that reads for all (dealt.h). The engine uses nothing else of them.
 */
#ifndef NOJIT_TRAINER_BATCH_SOURCE_H
#define NOJIT_TRAINER_BATCH_SOURCE_H

#include "batch/batch.h"

#include <stdint.h>

/* A position that a run resumes from: equal state and options give equal batches. */
struct data_state {
    uint64_t epoch, window;
};

struct batch_source;
/* The operations of a kind of source. A source that draws from another one closes it, too. */
struct batch_source_ops {
    /* Give the next micro-batch, which is valid until the next call. Return 0 for a micro-batch, 1 at the end of the
     * pass, or a negative error. */
    int (*next)(struct batch_source *s, struct batch *out);
    void (*tell)(struct batch_source *s, struct data_state *out);
    void (*seek)(struct batch_source *s, const struct data_state *at);
    /* Change the number of sequences of a batch; the position stays. */
    int (*resize)(struct batch_source *s, int batch_size);
    /* Return the number of rows of an epoch. */
    int64_t (*rows)(struct batch_source *s);
    void (*close)(struct batch_source *s);
    /* Return rc, or NJ_ELSEWHERE if another rank could not read (rc < 0), which reports why. All ranks that read for
     * themselves ask. NULL: rc. */
    int (*agree)(struct batch_source *s, int rc);
    /* Return the source that this rank asks without the others. NULL: the source itself. */
    struct batch_source *(*alone)(struct batch_source *s);
};
/* The common part of all sources, the first member of each kind. */
struct batch_source {
    const struct batch_source_ops *ops;
};

static inline int batches_next(struct batch_source *s, struct batch *out)
{
    return s->ops->next(s, out);
}

static inline void batches_tell(struct batch_source *s, struct data_state *out)
{
    s->ops->tell(s, out);
}

static inline void batches_seek(struct batch_source *s, const struct data_state *at)
{
    s->ops->seek(s, at);
}

static inline int batches_resize(struct batch_source *s, int batch_size)
{
    return s->ops->resize(s, batch_size);
}

static inline int64_t batches_rows(struct batch_source *s)
{
    return s->ops->rows(s);
}

static inline void batches_close(struct batch_source *s)
{
    if (s)
        s->ops->close(s);
}

static inline int batches_agree(struct batch_source *s, int rc)
{
    return s->ops->agree ? s->ops->agree(s, rc) : rc;
}

static inline struct batch_source *batches_alone(struct batch_source *s)
{
    return s->ops->alone ? s->ops->alone(s) : s;
}

#endif

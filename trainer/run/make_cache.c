/* SPDX-License-Identifier: Apache-2.0
 *
 * make_cache.c: see make_cache.h. Data is read twice: first all passages are counted, so that size and time are known,
 * then the sequences that have a passage which the cache lacks are run. A sequence is as training has it, so that its
 * hidden states have the same bits.
 */
#include "run/make_cache.h"

#include "base/clock.h"
#include "base/plural.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/waits.h"
#include "model/model_open.h"
#include "run/cached_teacher.h"
#include "run/estimate.h"
#include "run/run_engine.h"
#include "run/run_inputs.h"
#include "run/shard_writer.h"

#include <stdlib.h>
#include <string.h>

/* A batch that is filled, or that runs. */
struct job {
    struct batch batch;
    int filled;               /* number of its sequences that are filled */
    int32_t *at;              /* [B x S] positions of its targets */
    bool *fresh;              /* [B x S] whether each of its passages is to be written */
    int passages;             /* number of its passages */
    struct passage_rows rows; /* while it runs */
    bool runs;
};

/* The state of the work. */
struct making {
    struct run *r;
    const struct cache_part *part;
    struct cache_facts facts;    /* known before the engine is open: type and sizes */
    struct teacher_cache *cache; /* NULL: there is none yet */
    int32_t *at;                 /* [S] positions of the targets of a sequence */
    struct passage_set counted;  /* passages that the cache lacks */
    int64_t passages, rows;      /* number of these, and of their rows */
    int64_t sequences;           /* number of the sequences that they are in */
    int64_t there;               /* number of passages that it has already */
    /* Computing: one batch is filled while the other one runs, one shard while the other one is written. */
    struct job job[2];
    int now;      /* job that is filled */
    char *hidden; /* [B x S, C] in pinned memory */
    struct shard_writer writer;
    int64_t done; /* number of rows computed */
};

int cache_part_read(const char *text, struct cache_part *out)
{
    char end;
    *out = (struct cache_part){1, 1};
    if (text == NULL)
        return 0;
    if (sscanf(text, "%d/%d%c", &out->number, &out->of, &end) == 2 && out->number >= 1 &&
        out->number <= out->of)
        return 0;
    return fail(NJ_E_ARG, "--part %s: give the number of a part and how many there are, as in 2/4",
                text);
}

/* ---- data, a sequence at a time ---- */

typedef int row_fn(struct making *m, const struct batch *row);

static int each_row_of(struct making *m, struct batch_source *from, int64_t *row, row_fn *each)
{
    const int64_t rows = from ? batches_rows(from) : 0;
    struct batch b;
    if (rows == 0)
        return 0;
    TRY(batches_resize(from, 1));
    batches_seek(from, &(struct data_state){0});
    for (int64_t i = 0; i < rows; i++, ++*row) {
        TRY(batches_next(from, &b));
        if (*row % m->part->of == m->part->number - 1)
            TRY(each(m, &b));
    }
    return 0;
}

static int each_row(struct making *m, row_fn *each)
{
    int64_t row = 0;
    TRY(each_row_of(m, m->r->batches, &row, each));
    return each_row_of(m, m->r->eval_batches, &row, each);
}

/* ---- counting ---- */

static int count_row(struct making *m, const struct batch *row)
{
    const struct passage_rows rows = passages_of(row, m->at);
    const int64_t before = m->passages;
    struct passage p = {0};
    while (passage_next(&rows, &p)) {
        if (m->cache && cache_has(m->cache, p.key)) {
            m->there++;
            continue;
        }
        const int added = passage_set_add(&m->counted, p.key);
        if (added < 0)
            return added;
        m->passages += added;
        m->rows += added > 0 ? p.targets : 0;
    }
    m->sequences += m->passages > before;
    return 0;
}

/* Print the time that the teacher is expected to take, if the GPU is a known one. */
static int say_time(const struct making *m)
{
    struct run *r = m->r;
    const struct nj_device_info *d = nj_context_device(r->ctx);
    const struct gpu *gpu = gpu_of_device(d->name);
    struct model_config c;
    char low[32], high[32];
    if (!gpu || m->sequences == 0)
        return 0;
    TRY(source_config(r->student, &c));
    const struct step_work work = forward_work_count(&c, &r->options, (double)m->sequences);
    const struct estimate time = estimate_step(gpu, r->options.dtype, &work);
    if (time.high < 1)
        return 0;
    progress_say(&r->progress, "expected time on this %s: %s to %s", gpu->device,
                 duration_text(time.low, low, sizeof low),
                 duration_text(time.high, high, sizeof high));
    return 0;
}

static int say_count(const struct making *m)
{
    char size[32], each[32];
    const double bytes = (double)cache_row_bytes(&m->facts);
    if (m->there > 0)
        progress_say(&m->r->progress, "%lld passage%s of the data %s in %s already",
                     (long long)m->there, plural(m->there), m->there == 1 ? "is" : "are",
                     m->r->s->out);
    progress_say(&m->r->progress,
                 "%lld hidden state%s to compute, in %lld passage%s: %s, %s for each token with a "
                 "target",
                 (long long)m->rows, plural(m->rows), (long long)m->passages, plural(m->passages),
                 bytes_text((double)m->rows * bytes, size, sizeof size),
                 bytes_text(bytes, each, sizeof each));
    return say_time(m);
}

static int count(struct making *m)
{
    wait_begin("counting passages");
    const int rc = each_row(m, count_row);
    wait_end();
    return rc == 0 ? say_count(m) : rc;
}

/* ---- computing ---- */

/* Add the passages of a batch that the cache lacked to the shard. */
static int keep(struct making *m, const struct job *job)
{
    const size_t row_bytes = cache_row_bytes(&m->facts);
    struct cache_shard *shard = shard_writer_now(&m->writer);
    struct passage p = {0};
    for (int i = 0; passage_next(&job->rows, &p); i++) {
        if (!job->fresh[i])
            continue;
        TRY(cache_shard_add(shard, &job->rows, &p, m->hidden + (size_t)p.first * row_bytes));
        m->done += p.targets;
    }
    progress_bytes(&m->r->progress, (double)m->done * (double)row_bytes,
                   (double)m->rows * (double)row_bytes);
    return shard->bytes >= (size_t)m->r->s->shard_bytes ? shard_writer_write(&m->writer) : 0;
}

static int begin_job(struct making *m, struct job *job)
{
    for (; job->filled < job->batch.B; job->filled++)
        batch_pad_row(&job->batch, job->filled, 0);
    job->rows = passages_of(&job->batch, job->at);
    job->runs = true;
    return engine_hidden_begin(m->r->engine,
                               &(struct score_batch){.ids = job->batch.ids,
                                                     .pos = job->batch.pos,
                                                     .doc_start = job->batch.doc_start,
                                                     .at = job->at,
                                                     .count = job->rows.targets});
}

/* Wait for the batch that runs, begin the one that is filled, and keep the results of the former meanwhile. */
static int run_batch(struct making *m)
{
    struct job *filled = &m->job[m->now], *ran = &m->job[!m->now];
    const bool ends = ran->runs;
    m->now = !m->now;
    ran->runs = false;
    if (ends)
        TRY(engine_hidden_end(m->r->engine, ran->rows.targets, m->hidden));
    if (filled->filled > 0)
        TRY(begin_job(m, filled));
    if (ends)
        TRY(keep(m, ran));
    ran->filled = ran->passages = 0;
    return 0;
}

/* Add a sequence to the batch, if it has a passage that the cache lacks. */
static int take_row(struct making *m, const struct batch *row)
{
    struct job *job = &m->job[m->now];
    const struct passage_rows rows = passages_of(row, m->at);
    struct passage p = {0};
    int passages = job->passages;
    bool lacks = false;
    while (passage_next(&rows, &p)) {
        const bool fresh = !cache_has(m->cache, p.key);
        if (fresh)
            TRY(cache_note(m->cache, p.key));
        lacks = lacks || fresh;
        job->fresh[passages++] = fresh;
    }
    if (!lacks)
        return 0;
    job->passages = passages;
    batch_copy_row(&job->batch, job->filled++, row, 0);
    return job->filled == job->batch.B ? run_batch(m) : 0;
}

static int allocate(struct making *m)
{
    const struct train_options *o = &m->r->options;
    const size_t positions = (size_t)o->batch_size * (size_t)o->seq_len;
    void *hidden;
    const int rc =
        nj_alloc(m->r->ctx, NJ_MEM_HOST, positions * cache_row_bytes(&m->facts), &hidden);
    if (rc != 0)
        return fail_context(rc, m->r->ctx, "memory for the hidden states of a batch");
    m->hidden = hidden;
    for (int i = 0; i < 2; i++) {
        struct job *job = &m->job[i];
        job->at = calloc(positions, sizeof *job->at);
        job->fresh = calloc(positions, sizeof *job->fresh);
        if (!job->at || !job->fresh)
            return fail(NJ_E_NOMEM, "no host memory for a batch; free some");
        TRY(batch_allocate(&job->batch, o->batch_size, o->seq_len, DATA_ARRAYS));
    }
    return 0;
}

/* Run all batches, the last two included, and write the last shard. */
static int run_all(struct making *m)
{
    TRY(each_row(m, take_row));
    TRY(run_batch(m));
    TRY(run_batch(m));
    TRY(shard_writer_write(&m->writer));
    return shard_writer_wait(&m->writer);
}

static int compute(struct making *m)
{
    struct run *r = m->r;
    char size[32], took[32];
    const double started = r->progress.started = clock_seconds();
    TRY(allocate(m));
    shard_writer_begin(&m->writer, r->s->out, &m->facts);
    const int rc = run_all(m);
    progress_clear(&r->progress);
    if (rc != 0)
        return rc;
    const double seconds = clock_seconds() - started;
    const int64_t files = shard_writer_files(&m->writer);
    progress_say(&r->progress,
                 "%lld hidden state%s, %s in %lld file%s, in %s (%.0f/s); train with --teacher %s",
                 (long long)m->done, plural(m->done),
                 bytes_text(shard_writer_bytes(&m->writer), size, sizeof size), (long long)files,
                 plural(files), duration_text(seconds, took, sizeof took),
                 seconds > 0 ? (double)m->done / seconds : 0, r->s->out);
    return 0;
}

/* ---- all of it ---- */

static int open_data(struct run *r)
{
    const struct settings *s = r->s;
    TRY(run_open_tokenizer(r));
    TRY(run_engine_options(r));
    TRY(run_open_data(r, &s->data, false, &r->data, &r->batches));
    if (s->eval_data.count > 0)
        TRY(run_open_data(r, &s->eval_data, true, &r->eval_data, &r->eval_batches));
    run_say_data(r);
    return 0;
}

static int make(struct making *m)
{
    struct run *r = m->r;
    const struct train_options *o = &r->options;
    TRY(open_data(r));
    TRY(cache_facts_plan(r, &m->facts));
    m->at = calloc((size_t)o->seq_len, sizeof *m->at);
    if (!m->at)
        return fail(NJ_E_NOMEM, "no host memory for a sequence; free some");
    if (r->s->out && cache_is_there(r->s->out))
        TRY(cache_open(r->s->out, &m->cache));
    TRY(count(m));
    if (r->s->dry_run)
        return 0;
    TRY(folder_check_model_space(r->s->out, (uint64_t)m->rows * cache_row_bytes(&m->facts)));
    TRY(run_open_engine(r));
    cache_close(m->cache);
    m->cache = NULL;
    TRY(cache_folder_take(r, &m->facts, &m->cache));
    return compute(m);
}

int make_cache(struct run *r, const struct cache_part *part)
{
    struct making m = {.r = r, .part = part};
    const int rc = make(&m);
    shard_writer_end(&m.writer);
    passage_set_free(&m.counted);
    cache_close(m.cache);
    nj_free(r->ctx, NJ_MEM_HOST, m.hidden);
    for (int i = 0; i < 2; i++) {
        batch_free(&m.job[i].batch);
        free(m.job[i].at);
        free(m.job[i].fresh);
    }
    free(m.at);
    return rc;
}

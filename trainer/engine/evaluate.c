/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.c: held-out losses: the training pass without its backward half, summed over one pass of the data. An
 * engine that only evaluates also compares student and teacher token by token. Ranks that are processes share the
 * batches; their sums are added in the order of the batches, so that bits do not depend on the number of ranks.
 */
#include "engine/engine.h"

#include "base/try.h"
#include "io/error.h"
#include "state/engine_struct.h"
#include "state/ranks.h"
#include "step/micro_batch.h"
#include "step/micro_step.h"
#include "step/step.h"

#include <math.h>
#include <stdlib.h>

/* Sums and values over the tokens of one pass. */
struct tally {
    struct {
        OBJECTIVE_SUMS(MEAN_FIELD)
    } sum;
    double teacher_ce, distance;
    float *kd; /* one divergence per token; NULL if the engine does not compare */
    size_t count, capacity;
};

/* Keep the values of a batch's valid rows, which come first. */
static int keep_tokens(const struct engine *e, struct tally *t, size_t valid)
{
    const struct memory *m = &e->mem;
    if (!m->token_kd)
        return 0;
    if (t->count + valid > t->capacity) {
        size_t capacity = 2 * (t->count + valid);
        float *grown = realloc(t->kd, capacity * sizeof *grown);
        if (!grown)
            return fail(NJ_E_NOMEM, "out of memory for the divergences of %zu tokens", capacity);
        t->kd = grown;
        t->capacity = capacity;
    }
    for (size_t i = 0; i < valid; i++) {
        t->kd[t->count++] = m->token_kd[i];
        t->teacher_ce += (double)m->token_ce[i];
    }
    return 0;
}

/* Return the number of batches of a round: one of each rank. */
static int round_of(const struct engine *e)
{
    return e->shape.rank == RANKS_VIRTUAL ? 1 : e->shape.ranks;
}

/* Return the slot of a batch: the n-th of a round belongs to rank n. */
static int slot_of(const struct engine *e, int64_t batch)
{
    return round_of(e) == 1 || batch % round_of(e) == e->shape.rank ? 0 : NO_SLOT;
}

static int run_batch(struct engine *e)
{
    struct work r = engine_work(e);
    OP(&r, nj_zero(r.s, e->mem.sums, sizeof *e->mem.sums));
    OP(&r, send_batch(e, 0));
    send_to_teacher(&r, e, 0, 1);
    micro_step(&r, e, e->chunks_of[0], false);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "evaluation");
}

/* Add the sums of the first `batches` ranks; in an incomplete round the others have no batch. */
static int add_batches(struct engine *e, struct tally *t, int batches)
{
    struct work r = engine_work(e);
    const struct losses *host = (const struct losses *)(const void *)e->mem.transfer;
    const struct losses *sums = ranks_losses(&r, e);
    OP(&r, nj_copy(r.s, e->mem.transfer, sums, (size_t)batches * sizeof *sums));
    OP(&r, nj_stream_sync(r.s));
    if (r.rc != 0)
        return engine_fail(e, r.rc, "evaluation");
    for (int batch = 0; batch < batches; batch++) {
#define ADD_SUM(name) t->sum.name += (double)host[batch].objective.name;
        OBJECTIVE_SUMS(ADD_SUM)
        t->distance += (double)host[batch].distance.kd_loss;
    }
    return 0;
}

static int attend(struct engine *e)
{
    struct work r = engine_work(e);
    teacher_attend(&r, &e->teacher);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "evaluation");
}

/* End a round of `batches` batches. The ranks beyond these, which have none in the last round, take their part in the
 * others' passes of the teacher. */
static int end_round(struct engine *e, struct tally *t, int batches)
{
    TRY(e->shape.rank < batches ? run_batch(e) : attend(e));
    return add_batches(e, t, batches);
}

/* Stage the next batch. All ranks have theirs before any of them computes, for which it may need the others. */
static int next_batch(struct engine *e, struct batch_source *d, struct tally *t, int64_t batch)
{
    const int64_t before = e->valid;
    const int each = round_of(e);
    const bool last = (batch + 1) % each == 0;
    int rc = stage_next(e, d, 0, slot_of(e, batch));
    if (rc < 0 || (rc == 0 && last))
        rc = stage_agree(e, d, rc);
    if (rc == 0 && last)
        rc = end_round(e, t, each);
    return rc != 0 ? rc : keep_tokens(e, t, (size_t)(e->valid - before));
}

/* End the pass in, or after, a round of `batches` batches. */
static int end_pass(struct engine *e, struct batch_source *d, struct tally *t, int batches)
{
    const int rc = stage_agree(e, d, 1);
    if (rc < 0 || batches == 0)
        return rc;
    TRY(end_round(e, t, batches));
    return rc;
}

/* Compare for ascending order, NaN last. */
static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    if (isnan(x) || isnan(y))
        return !!isnan(x) - !!isnan(y);
    return (x > y) - (x < y);
}

/* Return the smallest value that at least this share of the sorted values does not exceed. */
static double percentile(const struct tally *t, int percent)
{
    size_t rank = (t->count * (size_t)percent + 99) / 100;
    return (double)t->kd[rank - 1];
}

static void report(const struct engine *e, struct tally *t, struct eval_result *out)
{
    const double n = (double)e->valid;
#define MEAN(name) .name = t->sum.name / n,
    *out = (struct eval_result){.valid_tokens = e->valid, OBJECTIVE_SUMS(MEAN)};
    out->perplexity = exp(out->ce_loss);
    out->loss = loss_of(e, out->kd_loss, out->ce_loss);
    if (!t->kd)
        return;
    qsort(t->kd, t->count, sizeof *t->kd, by_value);
    out->kd_p50 = percentile(t, 50);
    out->kd_p90 = percentile(t, 90);
    out->kd_p99 = percentile(t, 99);
    out->kd_max = percentile(t, 100);
    out->teacher_ce_loss = t->teacher_ce / n;
    out->teacher_perplexity = exp(t->teacher_ce / n);
    out->acceptance = e->o.acceptance ? 1 - t->distance / n : 0;
}

void engine_watch(struct engine *e, void (*seen)(void *user, int64_t rows, int64_t total),
                  void *user)
{
    e->seen = seen;
    e->seen_user = user;
}

static void tell(const struct engine *e, struct batch_source *d, int64_t batches)
{
    const int64_t total = batches_rows(d), rows = batches * e->o.batch_size;
    if (e->seen != NULL)
        e->seen(e->seen_user, rows < total ? rows : total, total);
}

int engine_eval(struct engine *e, struct batch_source *d, struct eval_result *out)
{
    struct tally t = {0};
    int rc;
    *out = (struct eval_result){0};
    e->valid = 0;
    batches_seek(d, &(struct data_state){0});
    int64_t batch = 0;
    for (rc = 0; rc == 0; batch += rc == 0) {
        tell(e, d, batch);
        const bool enough = e->o.eval_batches > 0 && batch == e->o.eval_batches;
        rc = enough ? 1 : next_batch(e, d, &t, batch);
    }
    const int left = (int)(batch % round_of(e));
    if (rc > 0)
        rc = end_pass(e, d, &t, left);
    if (rc > 0 && e->valid == 0)
        rc = fail(NJ_E_FORMAT, "no position of the evaluation data has a target; give more data");
    if (rc > 0)
        report(e, &t, out);
    free(t.kd);
    return rc > 0 ? 0 : rc;
}

int engine_check_eval(struct engine *e, const struct eval_result *r)
{
    const char *what, *name;
    if (isfinite(r->ce_loss) && isfinite(r->kd_loss) && isfinite(r->teacher_ce_loss))
        return 0;
    const int rc = scan_weights(e, &what, &name);
    if (rc != 0)
        return engine_fail(e, rc, "searching for the tensor that is not finite");
    if (name)
        return fail(NJ_E_FORMAT,
                    "the loss is not finite: %s %s contains NaN or infinity; use an intact model",
                    what, name);
    return fail(NJ_E_FORMAT,
                "the loss is not finite, though all weights are: activations overflow; use %s",
                e->o.dtype == NJ_F32 ? "another model" : "--dtype float32");
}

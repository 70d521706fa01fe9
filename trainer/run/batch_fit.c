/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_fit.c: --batch-size auto, and what else would make a run fit.
 */
#include "run/batch_fit.h"

#include "base/try.h"
#include "model/model_open.h"
#include "net/net.h"
#include "run/teacher_types.h"

#include <stdlib.h>
#include <string.h>

/* Shares of the free memory that --batch-size auto leaves, as 1/N. On a GPU they are for the driver's graphs and
 * other programs; on a machine for files and all other programs, and because its kernel ends a program that takes
 * too much. */
enum { SPARE_OF_GPU = 32, SPARE_OF_MACHINE = 4 };

size_t fit_part(size_t budget, bool gpu)
{
    return budget - budget / (gpu ? SPARE_OF_GPU : SPARE_OF_MACHINE);
}

/* A buffer for "12.3 GiB", one of several sizes in a sentence. */
struct size_text {
    char s[32];
};

static const char *in_words(size_t bytes, struct size_text *buffer)
{
    return bytes_text((double)bytes, buffer->s, sizeof buffer->s);
}

int fit_batch(struct run *r, const struct model_config *student, const struct model_config *teacher,
              size_t budget, int most)
{
    struct train_options *o = &r->options;
    struct train_options planned = *o;
    struct size_text size, had;
    struct plan p;
    planned.steps = 1; /* training, whatever the number of steps */
    TRY(plan_largest_batch(student, teacher, &planned, budget, most, &planned.batch_size));
    o->batch_size = planned.batch_size > 0 ? planned.batch_size : 1;
    const bool all = o->batch_size == most && most < BATCH_MOST;
    planned.batch_size = o->batch_size;
    TRY(plan_make(student, teacher, &planned, &p));
    if (p.total_bytes > budget)
        return 0; /* callers compare plan and budget, and refuse */
    progress_say(&r->progress, "batch size %d, %s: uses %s of %s available", o->batch_size,
                 all ? "all sequences of an epoch" : "the largest that fits",
                 in_words(p.total_bytes, &size), in_words(budget, &had));
    return 0;
}

/* Return the rows of an epoch for each micro-batch of a step: rows of the data, or of answers if there is no data. */
static int rows_of_data(const struct run *r)
{
    const struct rollouts *o = &r->rollouts;
    const int64_t accum = r->options.grad_accum;
    int64_t rows = data_windows(r->data);
    if (data_tokens(r->data) == 0)
        rows = (prompts_count(o->prompts) * r->s->group + o->each - 1) / o->each;
    rows = (rows + accum - 1) / accum;
    return rows < BATCH_MOST ? (int)rows : BATCH_MOST;
}

/* Return the memory for which a run may plan; the plan includes the workspace of GEMMs from here on. */
static size_t budget_of(struct run *r)
{
    const bool gpu = strcmp(nj_context_device(r->ctx)->backend, "cpu") != 0;
    const size_t room = fit_part(nj_context_budget(r->ctx), gpu), wanted = r->options.memory_bytes;
    r->options.workspace_bytes = nj_gemm_workspace_bytes(r->ctx);
    r->options.cell_bytes = nj_context_device(r->ctx)->cell_bytes;
    r->options.array_bytes = nj_context_device(r->ctx)->array_bytes;
    return wanted > 0 && wanted < room ? wanted : room;
}

/* Read the models' configurations. teacher: NULL without one. */
static int read_configs(const struct run *r, struct model_config (*of)[2],
                        const struct model_config **teacher)
{
    const bool has_teacher = r->teacher[0] != '\0';
    const int rc = source_config(r->student, &(*of)[0]);
    *teacher = has_teacher ? &(*of)[1] : NULL;
    return rc != 0 || !has_teacher ? rc : source_config(r->teacher, &(*of)[1]);
}

static int choose_batch(struct run *r)
{
    struct model_config of[2];
    const struct model_config *teacher;
    char before[32];
    if (checkpoints_setting(&r->checkpoints, "batch-size", before, sizeof before)) {
        r->options.batch_size = (int)strtol(before, NULL, 10);
        progress_say(&r->progress, "batch size %d, as in %s", r->options.batch_size,
                     r->checkpoints.resume);
        return 0;
    }
    TRY(read_configs(r, &of, &teacher));
    return fit_batch(r, &of[0], teacher, budget_of(r), rows_of_data(r));
}

int run_fit_batch(struct run *r)
{
    if (group_leads(r->group))
        TRY(choose_batch(r));
    TRY(group_share(r->group, &r->options.batch_size, sizeof r->options.batch_size));
    return batches_resize(r->batches, r->options.batch_size);
}

int fit_decoder(struct run *r, const struct model_config *student,
                const struct model_config *teacher, size_t budget, bool train, int most)
{
    struct train_options planned = r->options;
    struct plan p;
    int fits = 1, rc = 0;
    planned.steps = train; /* whatever their number */
    for (int low = 2, high = most; low <= high && rc == 0;) {
        planned.decode_rows = low + (high - low) / 2;
        rc = plan_make(student, teacher, &planned, &p);
        if (rc == 0 && plan_fits(&p, &planned, budget)) {
            fits = planned.decode_rows;
            low = fits + 1;
        } else
            high = planned.decode_rows - 1;
    }
    r->options.decode_rows = fits;
    return rc;
}

int run_fit_decoder(struct run *r, bool train, int most)
{
    const size_t budget = budget_of(r);
    struct model_config of[2];
    const struct model_config *teacher;
    TRY(read_configs(r, &of, &teacher));
    return fit_decoder(r, &of[0], teacher, budget, train, most);
}

/* ---- changes that would make a run fit ---- */

struct change {
    const char *text;
    int recompute, head_chunk, rank; /* new values; 0: unchanged */
    bool lp, state16, largest_batch, q4, shard;
};
static const struct change changes[] = {
    {"", .largest_batch = true},
    {"--recompute mlp", .recompute = RECOMPUTE_MLP},
    {"--recompute block", .recompute = RECOMPUTE_BLOCK},
    {"--head-chunk 256", .head_chunk = 256},
    {"--dtype bfloat16", .lp = true},
    {"--optimizer-state bf16", .state16 = true},
    {"--teacher-dtype q4_k", .q4 = true},
    {"--teacher-shard", .shard = true},
    {"--optimizer-state bf16 --recompute block", RECOMPUTE_BLOCK, .state16 = true},
    {"--lora-r 16", .rank = 16},
    {"--recompute block --head-chunk 256", RECOMPUTE_BLOCK, 256, .largest_batch = true},
    {"--optimizer-state bf16 --recompute block --head-chunk 256", RECOMPUTE_BLOCK, 256,
     .state16 = true, .largest_batch = true},
    {"--teacher-dtype q4_k --optimizer-state bf16 --recompute block", RECOMPUTE_BLOCK,
     .state16 = true, .q4 = true, .largest_batch = true},
    {"--lora-r 16 --recompute block --head-chunk 256", RECOMPUTE_BLOCK, 256, 16,
     .largest_batch = true},
};

/* Apply a change. Returns false if the run has it already, or if it is not possible. q4: types of the teacher for
 * --teacher-dtype q4_k; NULL if there is nothing to quantize. */
static bool apply(const struct change *c, struct train_options *o, const unsigned char *q4,
                  bool gpu)
{
    if ((c->q4 && !q4) || (c->lp && (o->dtype != NJ_F32 || !gpu)) ||
        (c->shard && (o->teacher_shard || o->rank == RANKS_VIRTUAL)) ||
        (c->rank > 0 && o->lora.rank > 0) || (c->state16 && o->optimizer_state == STATE_BF16))
        return false;
    if (c->recompute > 0)
        o->recompute = c->recompute;
    if (c->head_chunk > 0)
        o->head_chunk = c->head_chunk;
    if (c->lp)
        o->dtype = NJ_LP;
    if (c->q4)
        o->teacher_types = q4;
    if (c->shard)
        o->teacher_shard = 1;
    if (c->state16)
        o->optimizer_state = STATE_BF16;
    if (c->rank == 0)
        return true;
    o->lora.rank = c->rank;
    return lora_targets_add(&o->lora, "all-linear") == 0;
}

static int advise(struct run *r, const struct model_config *student,
                  const struct model_config *teacher, const struct change *c,
                  const unsigned char *q4, size_t now, size_t budget)
{
    struct train_options o = r->options;
    struct size_text size;
    struct plan p;
    char name[96];
    int rc = 0, batch = o.batch_size;
    if ((c->shard && !teacher) || !apply(c, &o, q4, r->s->device != (int)NJ_DEVICE_CPU))
        return 0;
    if (c->largest_batch)
        rc = plan_largest_batch(student, teacher, &o, budget, BATCH_MOST, &batch);
    o.batch_size = batch > 0 ? batch : 1;
    if (rc == 0)
        rc = plan_make(student, teacher, &o, &p);
    if (rc != 0)
        return rc;
    const bool fits = p.total_bytes <= budget;
    if (!fits && p.total_bytes > now - now / 200) /* hardly less memory is no advice */
        return 0;
    if (c->largest_batch)
        snprintf(name, sizeof name, "%s%s--batch-size %d", c->text, c->text[0] != '\0' ? " " : "",
                 o.batch_size);
    else
        snprintf(name, sizeof name, "%s", c->text);
    progress_say(&r->progress, "  %-80s %12s%s", name, in_words(p.total_bytes, &size),
                 fits ? "  fits" : "");
    return 0;
}

int fit_advise(struct run *r, const struct model_config *student,
               const struct model_config *teacher, size_t now, size_t budget)
{
    unsigned char *q4 = NULL;
    int rc = 0;
    if (teacher && !r->options.teacher_fp8 && !r->options.teacher_types)
        rc = teacher_types_as(teacher, TEACHER_Q4_K, &q4);
    progress_say(&r->progress, "does not fit. Options that would help:");
    for (size_t i = 0; i < sizeof changes / sizeof *changes && rc == 0; i++)
        rc = advise(r, student, teacher, &changes[i], q4, now, budget);
    free(q4);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: decides what memory a run needs before anything is allocated, whether it fits, and the largest batch that
 * does.
 */
#include "state/plan_layout.h"

#include "base/checked.h"
#include "base/try.h"
#include "io/error.h"
#include "net/activation.h"
#include "state/cost.h"
#include "teacher/cached.h"
#include "teacher/live.h"

int plan_teacher(const struct model_config *config, const struct train_options *o,
                 struct teacher *out)
{
    const bool shared = o->teacher_shard && shape_ranks_are_processes(o);
    *out = (struct teacher){0};
    if (!config)
        return 0;
    if (o->teacher_cache)
        return cached_open(out, config, o->dtype, o->teacher_cache);
    return live_open(out, &(struct live_setup){.config = config,
                                               .T = o->dtype,
                                               .f8 = o->teacher_fp8,
                                               .f8_scales = o->f8_scales,
                                               .fp8_refused = o->fp8_refused[1],
                                               .types = o->teacher_types,
                                               .cell_bytes = o->cell_bytes,
                                               .rank = o->rank,
                                               .ranks = shared ? o->ranks : 0});
}

static size_t step_comm_bytes(const struct train_options *o, const struct shape *s)
{
    const size_t wire = o->reduce_dtype == REDUCE_BF16 ? sizeof(uint16_t) : sizeof(float);
    const size_t losses = (size_t)(s->ranks - 1) * sizeof(struct losses);
    return shape_ranks_are_processes(o)
               ? losses + pieces_received(&s->pieces, wire, dtype_bytes(o->dtype))
               : 0;
}

static int check_options(const struct train_options *o)
{
    const struct {
        const char *name;
        int64_t value, least;
    } needed[] = {
        {"batch size", o->batch_size, 1},
        {"sequence length", o->seq_len, 1},
        {"gradient accumulation", o->steps > 0 ? o->grad_accum : 1, 1},
        {"steps", o->steps, 0},
        {"head chunk", o->head_chunk, 0},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].value < needed[i].least)
            return fail(NJ_E_ARG, "%s is %lld; it must be at least %lld", needed[i].name,
                        (long long)needed[i].value, (long long)needed[i].least);
    if (o->steps > 0 &&
        (o->ranks < 0 || o->ranks > NJ_COMM_RANKS_MOST || o->grad_accum % shape_ranks(o) != 0))
        return fail(NJ_E_ARG,
                    "gradient accumulation is %d and %d ranks share its micro-batches; it must be "
                    "a multiple of them, at most %d",
                    o->grad_accum, o->ranks, (int)NJ_COMM_RANKS_MOST);
    if ((int64_t)o->batch_size * o->seq_len > PLAN_ROWS_MOST)
        return fail(NJ_E_ARG, "batch size %d times sequence length %d is too large; lower one",
                    o->batch_size, o->seq_len);
    return 0;
}

/* Return whether the backward pass of experts computes all gradients of a block. */
static bool has_gradients(const struct block *b)
{
    const bool plain_route = b->groups == 0 && b->route_eps == 0 &&
                             (b->route_scale == 0 || b->route_scale == 1) &&
                             !block_has(b, FEATURE_CORRECTION);
    return plain_route && activation_is_silu(b) && b->glu_limit == 0 &&
           !block_has(b, FEATURE_MLP_BIAS) && !block_has(b, FEATURE_SHARED_EXPERT);
}

/* Refuse to train experts that only run forward. */
static int check_student(const struct model_config *c, const struct train_options *o)
{
    const struct block *b = arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
    if (o->steps == 0 || !b || has_gradients(b))
        return 0;
    return fail(
        NJ_E_UNSUPPORTED,
        "the student is a %s, for whose experts nojit has no gradients; it can be a teacher "
        "only: choose another student",
        c->model_type);
}

/* Return the device arena of a plan that is only counted. */
static struct carve plan_arena(struct plan *p, const struct train_options *o)
{
    p->cells.limit = o->cell_bytes / CARVE_ALIGN * CARVE_ALIGN;
    return (struct carve){.cells = p->cells.limit > 0 ? &p->cells : NULL};
}

int plan_make(const struct model_config *student, const struct model_config *teacher,
              const struct train_options *o, struct plan *out)
{
    struct net s = {.c = *student,
                    .T = o->dtype,
                    .recompute = (enum recompute)o->recompute,
                    .balance = train_balance(o, student) / (float)o->grad_accum,
                    .f8_scales = o->f8_scales,
                    .fp8_refused = o->fp8_refused[0]};
    struct teacher t = {0};
    struct lora lora = {0};
    struct memory placed;
    struct shape shape;
    *out = (struct plan){0};
    int rc = check_options(o);
    if (rc == 0)
        rc = check_student(student, o);
    if (rc == 0)
        rc = net_layout(&s, &o->lora, o->student_types, &lora);
    if (rc == 0)
        rc = student_fp8_choose(&s, o->student_fp8, train_rows(o));
    if (rc == 0)
        rc = plan_teacher(teacher, o, &t);
    if (rc == 0)
        plan_layout(&s, &t, o, plan_arena(out, o), NULL, &placed, out);
    if (rc == 0) {
        plan_shape(&s, teacher, o, &shape);
        out->step_comm_bytes = step_comm_bytes(o, &shape);
        out->work =
            step_work_count(&s, teacher_net(&t), teacher_batches(&t), o, placed.fp8_head.gradients);
    }
    if (rc == 0 && o->workspace_bytes > 0)
        plan_add_workspace(out, o->workspace_bytes);
    if (rc == 0 && (out->total_bytes == SIZE_MAX || out->host_bytes == SIZE_MAX))
        rc = fail(NJ_E_NOMEM,
                  "this run needs more memory than can be addressed; lower the batch size or the "
                  "sequence length, and check the sizes in config.json");
    net_free(&s);
    teacher_close(&t);
    lora_free(&lora);
    return rc;
}

static bool arrays_fit(const struct plan *p, const struct train_options *o)
{
    return o->array_bytes == 0 || p->array_bytes <= o->array_bytes;
}

bool plan_fits(const struct plan *p, const struct train_options *o, size_t budget)
{
    return p->total_bytes <= budget && arrays_fit(p, o);
}

int plan_check_array(const struct plan *p, const struct train_options *o)
{
    const double mib = 1.0 / (1 << 20);
    if (arrays_fit(p, o))
        return 0;
    return fail(NJ_E_NOMEM,
                "%s has an array of %.1f MiB, and this driver allocates at most %.1f MiB at a "
                "time; use a smaller model, batch or sequence, or --device cpu",
                p->array_in, (double)p->array_bytes * mib, (double)o->array_bytes * mib);
}

int plan_largest_batch(const struct model_config *student, const struct model_config *teacher,
                       const struct train_options *o, size_t budget, int most, int *out)
{
    struct train_options tried = *o;
    struct plan p;
    *out = 0;
    for (tried.batch_size = 1; tried.batch_size <= most; tried.batch_size++) {
        if ((int64_t)tried.batch_size * o->seq_len > PLAN_ROWS_MOST)
            break;
        TRY(plan_make(student, teacher, &tried, &p));
        if (plan_fits(&p, o, budget))
            *out = tried.batch_size;
        else if (plan_bytes_growing(&p) > budget)
            break;
    }
    return 0;
}

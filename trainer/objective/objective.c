/* SPDX-License-Identifier: Apache-2.0
 *
 * objective.c: see objective.h.
 */
#include "objective/objective.h"

#include "base/check.h"
#include "nojit_ops.h"

#include <stdio.h>

static void kl_losses(struct work *r, const struct objective_rows *w)
{
    if (w->e5m2.at)
        OP(r, nj_kd_head_e5m2(r->s, w->T,
                              &(struct nj_kd_head_e5m2){.g = w->e5m2.at,
                                                        .g_scale = w->e5m2.scale,
                                                        .kd = w->kd,
                                                        .ce = w->ce,
                                                        .entropy = w->entropy,
                                                        .agree = w->agree,
                                                        .s = w->logits,
                                                        .t = w->teacher,
                                                        .target = w->target,
                                                        .state = w->state,
                                                        .key = w->e5m2.key,
                                                        .M = w->count,
                                                        .V = w->vocab,
                                                        .Vs = w->ld,
                                                        .Vt = w->ld,
                                                        .G = w->e5m2.ld,
                                                        .first = w->e5m2.first,
                                                        .tau = w->terms.temperature,
                                                        .ratio = w->terms.kd_ratio,
                                                        .beta = w->terms.beta,
                                                        .cap = w->cap}));
    else
        OP(r, nj_kd_head(r->s, w->T,
                         &(struct nj_kd_head){.s = w->logits,
                                              .kd = w->kd,
                                              .ce = w->ce,
                                              .entropy = w->entropy,
                                              .agree = w->agree,
                                              .t = w->teacher,
                                              .target = w->target,
                                              .state = w->state,
                                              .M = w->count,
                                              .V = w->vocab,
                                              .Vs = w->ld,
                                              .Vt = w->ld,
                                              .tau = w->terms.temperature,
                                              .ratio = w->terms.kd_ratio,
                                              .beta = w->terms.beta,
                                              .cap = w->cap}));
}

static const char *kl_text(const struct objective_terms *terms, char *buffer, size_t bytes)
{
    const float beta = terms->beta;
    if (beta <= 0)
        return "KL(teacher || student)";
    if (beta >= 1)
        return "KL(student || teacher)";
    snprintf(buffer, bytes, "JSD(%.3g)", (double)beta);
    return buffer;
}

static void tvd_losses(struct work *r, const struct objective_rows *w)
{
    OP(r, nj_tv_head(r->s, w->T,
                     &(struct nj_tv_head){.s = w->logits,
                                          .tv = w->kd,
                                          .ce = w->ce,
                                          .entropy = w->entropy,
                                          .agree = w->agree,
                                          .t = w->teacher,
                                          .target = w->target,
                                          .state = w->state,
                                          .M = w->count,
                                          .V = w->vocab,
                                          .Vs = w->ld,
                                          .Vt = w->ld,
                                          .tau = w->terms.temperature,
                                          .ratio = w->terms.kd_ratio,
                                          .gradient = true,
                                          .cap = w->cap}));
}

static const char *tvd_text(const struct objective_terms *terms, char *buffer, size_t bytes)
{
    (void)terms, (void)buffer, (void)bytes;
    return "TVD(teacher, student)";
}

/* Compute the cross-entropy alone; without a teacher the kernel does not look at the terms. */
static void ce_losses(struct work *r, const struct objective_rows *w)
{
    OP(r, nj_kd_head(r->s, w->T,
                     &(struct nj_kd_head){.s = w->logits,
                                          .kd = w->kd,
                                          .ce = w->ce,
                                          .entropy = w->entropy,
                                          .agree = w->agree,
                                          .target = w->target,
                                          .state = w->state,
                                          .M = w->count,
                                          .V = w->vocab,
                                          .Vs = w->ld,
                                          .Vt = w->ld,
                                          .tau = 1,
                                          .ratio = 0,
                                          .beta = 0,
                                          .cap = w->cap}));
}

enum { NO_BETA, TAKES_BETA };
enum { NO_E5M2, HAS_E5M2 };
#define OBJECTIVE_ROW(ID, word, TAKES, BETA, E5M2, unit, help)                                     \
    [OBJECTIVE_##ID] = {#word, unit, TAKES, BETA, E5M2, word##_losses, word##_text},

const struct objective_row objectives[] = {[OBJECTIVE_CE] = {"ce", "nats", .losses = ce_losses},
                                           OBJECTIVES(OBJECTIVE_ROW)};

enum objective objective_with(enum objective which, enum teacher_form form)
{
    CHECK(form == TEACHER_NONE || (objectives[which].takes & form) != 0);
    return form == TEACHER_NONE ? OBJECTIVE_CE : which;
}

double objective_value(enum objective which, const struct objective_terms *terms, double kd,
                       double ce)
{
    const double r = objectives[which].takes ? (double)terms->kd_ratio : 0;
    const double T = (double)terms->temperature;
    return (1.0 - r) * ce + r * T * T * kd;
}

void objective_distances(struct work *r, const struct objective_rows *w)
{
    OP(r, nj_tv_head(r->s, w->T,
                     &(struct nj_tv_head){.s = w->logits,
                                          .tv = w->kd,
                                          .ce = w->ce,
                                          .entropy = w->entropy,
                                          .agree = w->agree,
                                          .t = w->teacher,
                                          .target = w->target,
                                          .state = w->state,
                                          .M = w->count,
                                          .V = w->vocab,
                                          .Vs = w->ld,
                                          .Vt = w->ld,
                                          .tau = 1,
                                          .ratio = 0,
                                          .gradient = false,
                                          .cap = w->cap}));
}

/* The sums of answers have a kernel of their own, which reads the logits once more: kd_head has no registers left
 * for them. */
void objective_answers(struct work *r, const struct objective_rows *w)
{
    OP(r, nj_kl_rows(r->s, w->T,
                     &(struct nj_kl_rows){.forward = w->kd,
                                          .reverse = w->ce,
                                          .entropy = w->entropy,
                                          .counted = w->agree,
                                          .s = w->logits,
                                          .t = w->teacher,
                                          .target = w->target,
                                          .M = w->count,
                                          .V = w->vocab,
                                          .Vs = w->ld,
                                          .Vt = w->ld,
                                          .tau = w->terms.temperature}));
}

void objective_add(struct work *r, void *sums, const struct objective_rows *w)
{
    OP(r, nj_loss_reduce(r->s, NJ_F32,
                         &(struct nj_loss_reduce){.sums = sums,
                                                  .kd = w->kd,
                                                  .ce = w->ce,
                                                  .entropy = w->entropy,
                                                  .agree = w->agree,
                                                  .M = w->count}));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * objective.c: see objective.h.
 */
#include "objective/objective.h"

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
                                                        .tau = w->temperature,
                                                        .ratio = w->kd_ratio,
                                                        .beta = w->beta}));
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
                                              .tau = w->temperature,
                                              .ratio = w->kd_ratio,
                                              .beta = w->beta}));
}

static const char *kl_text(float beta, char *buffer, size_t bytes)
{
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
                                          .tau = w->temperature,
                                          .ratio = w->kd_ratio,
                                          .gradient = true}));
}

static const char *tvd_text(float beta, char *buffer, size_t bytes)
{
    (void)beta, (void)buffer, (void)bytes;
    return "TVD(teacher, student)";
}

static const struct {
    void (*losses)(struct work *r, const struct objective_rows *rows);
    const char *(*text)(float beta, char *buffer, size_t bytes);
    bool takes_beta, has_e5m2;
} objectives[] = {
    [OBJECTIVE_KL] = {kl_losses, kl_text, .takes_beta = true, .has_e5m2 = true},
    [OBJECTIVE_TVD] = {tvd_losses, tvd_text, .takes_beta = false, .has_e5m2 = false},
};

bool objective_has_e5m2(enum objective which)
{
    return objectives[which].has_e5m2;
}

bool objective_takes_beta(enum objective which)
{
    return objectives[which].takes_beta;
}

const char *objective_text(enum objective which, float beta, char *buffer, size_t bytes)
{
    return objectives[which].text(beta, buffer, bytes);
}

void objective_losses(struct work *r, enum objective which, const struct objective_rows *rows)
{
    objectives[rows->teacher ? which : OBJECTIVE_KL].losses(r, rows);
}

void objective_cross_entropies(struct work *r, const struct objective_rows *w)
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
                                          .beta = 0}));
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
                                          .gradient = false}));
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
                                          .tau = w->temperature}));
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.c: see norm.h.
 */
#include "net/norm.h"

#include "net/layer_gemm.h"
#include "net/student_fp8.h"
#include "nojit_ops.h"

static bool has_before(const struct block_pass *p)
{
    return block_has(p->b, FEATURE_NORM_BEFORE);
}

static bool has_after(const struct block_pass *p)
{
    return block_has(p->b, FEATURE_NORM_AFTER);
}

/* A gain: its first element in the arenas, or -1 for a norm without one, and the number that is added to it. */
struct gain {
    int64_t first;
    float offset;
};

static struct gain gain_before(const struct block_pass *p)
{
    return (struct gain){p->first[block_matrices[p->b->kind].norm], p->b->gain_offset};
}

static struct gain gain_after(const struct block_pass *p)
{
    return (struct gain){p->first[block_matrices[p->b->kind].norm_after], p->b->gain_offset};
}

static struct gain gain_final(const struct net *n)
{
    return (struct gain){n->p.norm, n->c.gain_offset};
}

/* The gain of norms of the embedding's rows. */
static const struct gain one = {-1, 1};

void norm_embedding_fwd(struct work *r, const struct net *n, const struct acts *a, void *y,
                        float *rstd)
{
    OP(r, nj_rmsnorm_fwd(r->s, n->T,
                         &(struct nj_rmsnorm_fwd){.y = y,
                                                  .rstd = rstd,
                                                  .x = a->y,
                                                  .w = NULL,
                                                  .N = acts_rows(a),
                                                  .C = n->c.hidden_size,
                                                  .eps = n->c.rms_eps,
                                                  .offset = one.offset}));
}

void norm_fwd(struct work *r, const struct block_pass *p, float *top)
{
    const struct net *n = p->n;
    struct acts *a = p->a;
    const struct gain gain = gain_before(p);
    const void *w = net_weight(n, gain.first);
    const int N = acts_rows(a), C = n->c.hidden_size;
    if (!has_before(p))
        return;
    if (!product_x_made(a, p->matrix)) {
        OP(r, nj_rmsnorm_fwd(r->s, n->T,
                             &(struct nj_rmsnorm_fwd){.y = a->y,
                                                      .rstd = p->v.rstd,
                                                      .x = p->v.x,
                                                      .w = w,
                                                      .N = N,
                                                      .C = C,
                                                      .eps = n->c.rms_eps,
                                                      .offset = gain.offset}));
        return;
    }
    OP(r, nj_rmsnorm_quantize(r->s, n->T,
                              &(struct nj_rmsnorm_quantize){.q = a->x.q,
                                                            .scale = a->x.scale,
                                                            .top = top,
                                                            .rstd = p->v.rstd,
                                                            .x = p->v.x,
                                                            .w = w,
                                                            .N = N,
                                                            .C = C,
                                                            .eps = n->c.rms_eps,
                                                            .offset = gain.offset}));
}

void norm_again(struct work *r, const struct block_pass *p)
{
    const bool made = product_x_made(p->a, p->matrix);
    norm_fwd(r, p, made ? student_fp8_top(&p->a->f8, p->matrix, FP8_X) : NULL);
}

static float after_eps(const struct net *n)
{
    return n->c.after_eps > 0 ? n->c.after_eps : n->c.rms_eps;
}

void norm_after_fwd(struct work *r, const struct block_pass *p)
{
    const struct net *n = p->n;
    const struct gain gain = gain_after(p);
    if (has_after(p))
        OP(r, nj_rmsnorm_fwd(r->s, n->T,
                             &(struct nj_rmsnorm_fwd){.y = p->a->branch,
                                                      .rstd = p->v.output_rstd,
                                                      .x = p->v.output,
                                                      .w = net_weight(n, gain.first),
                                                      .N = acts_rows(p->a),
                                                      .C = n->c.hidden_size,
                                                      .eps = after_eps(n),
                                                      .offset = gain.offset}));
}

static void add_and_norm(struct work *r, const struct block_pass *p, struct gain gain, bool made)
{
    const struct net *n = p->n;
    const struct acts *a = p->a;
    const struct block_acts *v = &p->v;
    const int N = acts_rows(a), C = n->c.hidden_size;
    const void *w = net_weight(n, gain.first);
    if (made)
        OP(r, nj_add_rmsnorm_quantize(r->s, n->T,
                                      &(struct nj_add_rmsnorm_quantize){.q = a->x.q,
                                                                        .scale = a->x.scale,
                                                                        .s = v->next,
                                                                        .rstd = v->next_rstd,
                                                                        .x = v->x,
                                                                        .b = a->branch,
                                                                        .w = w,
                                                                        .N = N,
                                                                        .C = C,
                                                                        .eps = n->c.rms_eps,
                                                                        .offset = gain.offset}));
    else
        OP(r, nj_add_rmsnorm_fwd(r->s, n->T,
                                 &(struct nj_add_rmsnorm_fwd){.y = a->y,
                                                              .s = v->next,
                                                              .rstd = v->next_rstd,
                                                              .x = v->x,
                                                              .b = a->branch,
                                                              .w = w,
                                                              .N = N,
                                                              .C = C,
                                                              .eps = n->c.rms_eps,
                                                              .offset = gain.offset}));
}

static void add(struct work *r, const struct block_pass *p, void *sum, const void *rows)
{
    const int64_t elements = (int64_t)acts_rows(p->a) * p->n->c.hidden_size;
    OP(r, nj_add(r->s, p->n->T,
                 &(struct nj_add){.y = sum, .a = rows, .b = p->a->branch, .n = elements}));
}

/* Norm a block's output, add it to the stream, and norm the sum; gain NULL: compute the sum alone. */
static void norm_add_and_norm(struct work *r, const struct block_pass *p, const struct gain *gain)
{
    const struct net *n = p->n;
    const struct block_acts *v = &p->v;
    const struct gain after = gain_after(p);
    OP(r, nj_norm_add_norm_fwd(
              r->s, n->T,
              &(struct nj_norm_add_norm_fwd){.y = gain ? p->a->y : NULL,
                                             .s = v->next,
                                             .rstd = gain ? v->next_rstd : NULL,
                                             .b_rstd = v->output_rstd,
                                             .x = v->x,
                                             .b = v->output,
                                             .g = net_weight(n, after.first),
                                             .w = gain ? net_weight(n, gain->first) : NULL,
                                             .N = acts_rows(p->a),
                                             .C = n->c.hidden_size,
                                             .eps = n->c.rms_eps,
                                             .eps_b = after_eps(n),
                                             .offset = gain ? gain->offset : 0,
                                             .offset_b = after.offset}));
}

void norm_add_fwd(struct work *r, const struct block_pass *p, const struct block_pass *next)
{
    const bool normed = !next || has_before(next);
    const bool made = next && has_before(next) && product_x_made(p->a, next->matrix);
    const struct gain gain = !next ? gain_final(p->n) : gain_before(next);
    if (has_after(p) && !made) {
        norm_add_and_norm(r, p, normed ? &gain : NULL);
        return;
    }
    norm_after_fwd(r, p);
    if (normed)
        add_and_norm(r, p, gain, made);
    else
        add(r, p, p->v.next, p->v.x);
}

/* Compute dx = dres + the gradient of x, which a norm reads; dy is that of what it writes. */
static void gradient(struct work *r, const struct net *n, const struct acts *a, struct gain gain,
                     void *dx, const void *dy, const void *x, const float *rstd, const void *dres)
{
    const int N = acts_rows(a), C = n->c.hidden_size;
    OP(r, nj_rmsnorm_bwd(r->s, n->T,
                         &(struct nj_rmsnorm_bwd){.dx = dx,
                                                  .dw_part = gain.first < 0 ? NULL : a->part,
                                                  .dy = dy,
                                                  .x = x,
                                                  .w = net_weight(n, gain.first),
                                                  .rstd = rstd,
                                                  .dres = dres,
                                                  .N = N,
                                                  .C = C,
                                                  .P = partial_sums(N),
                                                  .offset = gain.offset}));
    norm_add_columns(r, n, gain.first, a->part, N, C);
}

void norm_embedding_bwd(struct work *r, const struct net *n, const struct acts *a, float *rstd)
{
    norm_embedding_fwd(r, n, a, a->branch, rstd);
    gradient(r, n, a, one, a->dx, a->dx, a->y, rstd, NULL);
}

void norm_final_bwd(struct work *r, const struct net *n, struct acts *a, const void *x,
                    const float *rstd)
{
    gradient(r, n, a, gain_final(n), a->dx, a->branch, x, rstd, NULL);
}

void norm_after_bwd(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    if (has_after(p))
        gradient(r, p->n, a, gain_after(p), a->branch, a->dx, p->v.output, p->v.output_rstd, NULL);
}

void norm_bwd(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    if (has_before(p))
        gradient(r, p->n, a, gain_before(p), a->dx, a->branch, p->v.x, p->v.rstd, a->dx);
    else
        add(r, p, a->dx, a->dx);
}

void norm_add_columns(struct work *r, const struct net *n, int64_t first, const float *part,
                      int rows, int columns)
{
    if (n->grad && first >= 0)
        OP(r, nj_colsum(r->s, NJ_F32,
                        &(struct nj_colsum){.dst = n->grad + first,
                                            .part = part,
                                            .P = partial_sums(rows),
                                            .C = columns}));
}

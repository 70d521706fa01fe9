/* SPDX-License-Identifier: Apache-2.0
 *
 * student_fp8.c: see student_fp8.h.
 */
#include "net/student_fp8.h"

#include "base/checked.h"
#include "base/try.h"
#include "io/error.h"
#include "net/fp8.h"
#include "nojit_ops.h"

#include <stdio.h>
#include <string.h>

static bool is_refused(const bool *refused)
{
    return refused && *refused;
}

static bool is_trained(const struct matrix *m)
{
    return m->format == &matrix_fp8_trained;
}

static bool in_layers(const struct net *n)
{
    for (const struct matrix *m = n->matrix; m < n->head; m++)
        if (is_trained(m))
            return true;
    return false;
}

bool student_fp8_head(const struct net *n)
{
    return is_trained(n->head);
}

bool student_fp8_any(const struct net *n)
{
    return student_fp8_head(n) || in_layers(n);
}

int64_t student_fp8_head_weights(const struct net *n)
{
    return student_fp8_head(n) ? matrix_elements(n->head) : 0;
}

int64_t student_fp8_weights(const struct net *n)
{
    return fp8_elements(n, &matrix_fp8_trained) - student_fp8_head_weights(n);
}

static int check_matrix(int multiple, int out, int in)
{
    if (in % multiple == 0 && out % multiple == 0)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "--student-dtype fp8 needs matrices whose sizes are multiples of %d, and "
                "this student has one of %d x %d; leave --student-dtype out",
                multiple, out, in);
}

static int check_sizes(const struct net *n, int64_t rows)
{
    /* Logits are computed for whole multiples of rows of the head. */
    const int multiple = fp8_multiple(n->f8_scales);
    if (rows % multiple != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "--student-dtype fp8 needs a multiple of %d tokens per micro-batch, and batch "
                    "size times sequence length is %lld; change --batch-size or --seq-len",
                    multiple, (long long)rows);
    if (student_fp8_head(n))
        TRY(check_matrix(multiple, multiple, n->c.hidden_size));
    for (const struct matrix *m = n->matrix; m < n->head; m++)
        if (is_trained(m))
            TRY(check_matrix(multiple, m->rows, m->cols));
    return 0;
}

static void name_add(struct net *n, const char *before, const char *name)
{
    const size_t used = strlen(n->fp8_names);
    snprintf(n->fp8_names + used, sizeof n->fp8_names - used, "%s%s", used > 0 ? before : "", name);
}

static void name_all(struct net *n)
{
    *n->fp8_names = '\0';
    for (int kind = 0; kind < BLOCK_KINDS; kind++)
        for (int i = 0; i < block_matrices[kind].count; i++) {
            if (!net_some(n, (enum block_kind)kind, i, is_trained))
                continue;
            if (!*n->fp8_names)
                name_add(n, "", "in each of the student's layers:");
            name_add(n, " ", block_matrices[kind].matrix[i].name);
        }
    if (student_fp8_head(n))
        name_add(n, "; ", "in the LM head: logits");
}

/* Choose the matrices whose x is written as E4M3, by norms and the activation. Adapters read x in 16 bits; attention
 * writes only 16 bits. The activation's kernel, which also writes the gradient of its own input as E4M3, has a largest
 * width. */
static void choose_made(const struct net *n)
{
    for (struct matrix *m = n->matrix; m < n->head; m++) {
        m->x_made = m->adapters == 0 && m->x != X_OTHER;
        if (m->x != X_ACTIVATION)
            continue;
        m->x_made &= m->cols <= FP8_WIDEST_ACTIVATION && is_trained(m - 1);
        m[-1].dy_own = true;
    }
}

static void choose(struct net *n, int64_t least)
{
    for (struct matrix *m = n->matrix; m <= n->head; m++) {
        if (m->first < 0) /* it keeps the format of a model that is only read */
            continue;
        const bool large = least > 0 && matrix_elements(m) >= least && !m->small;
        m->format = large && !is_refused(m->refused) ? &matrix_fp8_trained : &matrix_plain;
    }
    choose_made(n);
    name_all(n);
}

static bool any_refused(const struct net *n)
{
    bool any = false;
    for (const struct matrix *m = n->matrix; m <= n->head; m++)
        any |= is_refused(m->refused);
    return any;
}

int student_fp8_choose(struct net *n, int64_t least, int64_t rows)
{
    choose(n, least);
    if (least == 0)
        return 0;
    if (!student_fp8_any(n) && any_refused(n))
        return fail(NJ_E_UNSUPPORTED,
                    "--student-dtype fp8: cuBLASLt has no FP8 algorithm for any of this student's "
                    "GEMMs on this GPU; leave --student-dtype out");
    if (!student_fp8_any(n))
        return fail(NJ_E_UNSUPPORTED,
                    "--student-dtype fp8: all matrices of this student have fewer than %lld "
                    "elements, and their GEMMs are faster without FP8; leave --student-dtype out",
                    (long long)least);
    return check_sizes(n, rows);
}

/* Largest sizes that the GEMMs of a layer need. */
struct most {
    int in, out;
    size_t weight;
};

static struct most most_of(const struct net *n)
{
    struct most m = {0};
    for (const struct matrix *x = n->matrix; x < n->head; x++) {
        const size_t weight = size_mul((size_t)x->cols, (size_t)x->rows);
        if (!is_trained(x))
            continue;
        m.in = x->cols > m.in ? x->cols : m.in;
        m.out = x->rows > m.out ? x->rows : m.out;
        m.weight = weight > m.weight ? weight : m.weight;
    }
    return m;
}

static size_t top_bytes(const struct net *n)
{
    return size_product((size_t)(n->head - n->matrix), FP8_OPERANDS, sizeof(float));
}

float *student_fp8_top(const struct fp8_operands *o, const struct matrix *m, enum fp8_operand of)
{
    return o->top + m->number * FP8_OPERANDS + (int)of;
}

void student_fp8_begin_backward(struct work *r, const struct net *n, const struct acts *a)
{
    if (a->mode == ACTS_TRAIN && in_layers(n))
        OP(r, nj_zero(r->s, a->f8.top, top_bytes(n)));
}

void student_fp8_carve(const struct net *n, int rows, struct carve *m, struct acts *a)
{
    const struct most most = most_of(n);
    const size_t in = size_mul((size_t)rows, (size_t)most.in);
    const size_t out = size_mul((size_t)rows, (size_t)most.out);
    a->x = fp8_room(n->f8_scales, in, rows, most.in, m);
    a->f8.dy = fp8_room(n->f8_scales, out, rows, most.out, m);
    a->f8.dgu = fp8_room(n->f8_scales, out, rows, most.out, m);
    a->f8.w = fp8_room(n->f8_scales, most.weight, most.out, most.in, m);
    a->f8.xt = fp8_room(n->f8_scales, in, most.in, rows, m);
    a->f8.dyt = fp8_room(n->f8_scales, out, most.out, rows, m);
    a->f8.wt = fp8_room(n->f8_scales, most.weight, most.in, most.out, m);
    a->f8.top = carve_take(m, top_bytes(n));
}

static void quantize(struct work *r, enum nj_dtype T, const struct fp8_matrix *to, float *top,
                     const void *x, int rows, int columns)
{
    OP(r, nj_quantize_rows(
              r->s, T,
              &(struct nj_quantize_rows){
                  .q = to->q, .scale = to->scale, .top = top, .x = x, .N = rows, .C = columns}));
}

static void quantize_weight(struct work *r, const struct matrix *m, const struct matmul *p,
                            float *top)
{
    quantize(r, m->T, &p->training->w, top, m->data, m->rows, m->cols);
}

/* Transpose a matrix quantized by rows to one quantized by columns, with the largest of their scales. */
static void transpose(struct work *r, const struct fp8_matrix *to, const struct fp8_matrix *from,
                      const float *top, int rows, int columns)
{
    OP(r, nj_e4m3_transpose(r->s, NJ_F32,
                            &(struct nj_e4m3_transpose){.q = to->q,
                                                        .q_scale = to->scale,
                                                        .x = from->q,
                                                        .scale = from->scale,
                                                        .top = top,
                                                        .R = rows,
                                                        .C = columns}));
}

static void fwd(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                const void *x)
{
    struct linear l = matrix_shape(m, p);
    l.refused = m->refused;
    if (!p->training) {
        matrix_fwd_plain(r, m, p, y, x);
        return;
    }
    if (!m->x_made)
        quantize(r, m->T, p->x8, NULL, x, l.rows, l.in);
    quantize_weight(r, m, p, NULL);
    linear_fp8(r, &l, y, p->x8, &p->training->w);
}

static const struct fp8_matrix *gradient_of(const struct matrix *m, const struct matmul *p)
{
    return m->dy_own ? &p->training->dgu : &p->training->dy;
}

static void gradient(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy)
{
    if (p->training)
        quantize(r, m->T, gradient_of(m, p), student_fp8_top(p->training, m, FP8_DY), dy, p->rows,
                 m->rows);
}

static void dx(struct work *r, const struct matrix *m, const struct matmul *p, void *out,
               const void *dy)
{
    const struct linear back = {m->T,
                                p->rows,
                                m->cols,
                                m->rows,
                                .ldy = m->cols,
                                .scale = m->scale,
                                .refused = m->gradient_refused};
    if (!p->training) {
        matrix_dx_plain(r, m, p, out, dy);
        return;
    }
    float *top = student_fp8_top(p->training, m, FP8_W);
    quantize_weight(r, m, p, top);
    transpose(r, &p->training->wt, &p->training->w, top, m->rows, m->cols);
    linear_fp8(r, &back, out, gradient_of(m, p), &p->training->wt);
}

static void dw(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
               const void *x)
{
    const struct fp8_operands *o = p->training;
    const struct linear sum = {NJ_F32,
                               m->rows,
                               m->cols,
                               p->rows,
                               .ldy = m->cols,
                               .add = p->add,
                               .scale = m->scale,
                               .one_scale = true,
                               .refused = m->gradient_refused};
    if (!o) {
        matrix_dw_plain(r, m, p, dy, x);
        return;
    }
    float *x_top = student_fp8_top(o, m, FP8_X);
    const float *dy_top = student_fp8_top(o, m, FP8_DY);
    if (!m->x_made)
        quantize(r, m->T, p->x8, x_top, x, p->rows, m->cols);
    transpose(r, &o->xt, p->x8, x_top, p->rows, m->cols);
    transpose(r, &o->dyt, gradient_of(m, p), dy_top, p->rows, m->rows);
    linear_fp8(r, &sum, m->grad, &o->dyt, &o->xt);
}

const struct matrix_format matrix_fp8_trained = {
    .name = "fp8 in training",
    .e4m3_in_training = true,
    .carve = matrix_carve_plain,
    .weight = matrix_weight_plain,
    .gather = matrix_gather_plain,
    .fwd = fwd,
    .gradient = gradient,
    .dx = dx,
    .dw = dw,
};

bool student_fp8_head_on(const struct net *n, const struct acts *a)
{
    return a->mode == ACTS_TRAIN && student_fp8_head(n);
}

void student_fp8_head_carve(const struct net *n, int chunk, int ld, struct carve *m,
                            struct fp8_head *out)
{
    out->w = fp8_rows(n->f8_scales, ld, n->c.hidden_size, m);
    out->x = fp8_rows(n->f8_scales, chunk, n->c.hidden_size, m);
    out->w_top = carve_take(m, sizeof *out->w_top);
    out->x_top = carve_take(m, sizeof *out->x_top);
    out->dy_scale = carve_take(m, sizeof *out->dy_scale);
}

/* The gradient of the logits has one scale. */
bool student_fp8_head_gradients_may(const struct net *n)
{
    return n->f8_scales != NJ_F8_BLOCKS && !is_refused(n->head->gradient_refused);
}

void student_fp8_head_carve_gradients(const struct net *n, int chunk, int ld, struct carve *m,
                                      struct fp8_head *out)
{
    const int C = n->c.hidden_size;
    out->wt = fp8_rows(n->f8_scales, C, ld, m);
    out->xt = fp8_rows(n->f8_scales, C, chunk, m);
    out->dyt = (struct fp8_matrix){.rows = ld, .columns = chunk};
    out->dyt.q = carve_take(m, size_mul((size_t)ld, (size_t)chunk));
    out->dyt.scale = out->dy_scale;
}

void student_fp8_head_name(struct net *n, const struct fp8_head *h)
{
    if (h->gradients)
        name_add(n, " ", "and gradients");
}

void student_fp8_head_weight(struct work *r, const struct net *n, const struct fp8_head *h)
{
    const int ld = h->w.rows, C = h->w.columns;
    const int rows = n->c.vocab_size < ld ? n->c.vocab_size : ld;
    quantize(r, n->T, &h->w, NULL, n->head->data, rows, C);
    if (h->gradients)
        OP(r, nj_e4m3_top(r->s, NJ_F32,
                          &(struct nj_e4m3_top){.top = h->w_top, .scale = h->w.scale, .R = rows}));
    if (rows == ld)
        return;
    OP(r, nj_zero(r->s, h->w.q + (size_t)rows * (size_t)C, (size_t)(ld - rows) * (size_t)C));
    OP(r, nj_zero(r->s, h->w.scale + rows, (size_t)(ld - rows) * sizeof *h->w.scale));
}

void student_fp8_head_logits(struct work *r, const struct net *n, const struct fp8_head *h, void *y,
                             const void *x)
{
    const struct linear l = {n->T,
                             h->x.rows,
                             h->w.rows,
                             h->w.columns,
                             .ldy = h->w.rows,
                             .scale = n->head->scale,
                             .refused = n->head->refused};
    quantize(r, n->T, &h->x, NULL, x, l.rows, l.in);
    linear_fp8(r, &l, y, &h->x, &h->w);
}

static void head_dw(struct work *r, const struct net *n, const struct fp8_head *h, int vocab,
                    const char *dy, int64_t ld, bool add)
{
    const int chunk = h->x.rows, C = h->x.columns;
    const struct linear sum = {NJ_F32,
                               vocab,
                               C,
                               chunk,
                               .ldy = C,
                               .add = add,
                               .scale = n->head->scale,
                               .one_scale = true,
                               .x_e5m2 = true,
                               .refused = n->head->gradient_refused};
    OP(r,
       nj_e5m2_transpose(r->s, NJ_F32,
                         &(struct nj_e5m2_transpose){
                             .q = h->dyt.q, .x = dy, .R = chunk, .C = h->dyt.rows, .X = (int)ld}));
    OP(r, nj_e4m3_top(r->s, NJ_F32,
                      &(struct nj_e4m3_top){.top = h->x_top, .scale = h->x.scale, .R = chunk}));
    transpose(r, &h->xt, &h->x, h->x_top, chunk, C);
    linear_fp8(r, &sum, n->head->grad, &h->dyt, &h->xt);
}

void student_fp8_head_backward(struct work *r, const struct net *n, const struct fp8_head *h,
                               int vocab, void *dx, char *dy, int64_t ld, bool add)
{
    const int columns = h->w.rows, C = h->w.columns;
    const struct linear back = {n->T,
                                h->x.rows,
                                C,
                                columns,
                                .ldy = C,
                                .scale = n->head->scale,
                                .ldx = ld,
                                .one_scale = true,
                                .x_e5m2 = true,
                                .refused = n->head->gradient_refused};
    const struct fp8_matrix rows = {h->x.rows, columns, dy, h->dy_scale, NULL};
    if (n->head->grad)
        head_dw(r, n, h, vocab, dy, ld, add);
    transpose(r, &h->wt, &h->w, h->w_top, columns, C);
    linear_fp8(r, &back, dx, &rows, &h->wt);
}

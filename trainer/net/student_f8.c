/* SPDX-License-Identifier: Apache-2.0
 *
 * student_f8.c: see student_f8.h.
 */
#include "net/student_f8.h"

#include "base/checked.h"
#include "io/error.h"
#include "net/f8.h"
#include "nojit_ops.h"

#include <stdio.h>
#include <string.h>

static bool is_refused(const bool *refused)
{
    return refused && *refused;
}

static bool *logits_refused(const struct net *n)
{
    return n->f8_refused ? &n->f8_refused->logits : NULL;
}

static bool *gradients_refused(const struct net *n)
{
    return n->f8_refused ? &n->f8_refused->gradients : NULL;
}

static bool in_layers(const struct net *n)
{
    for (int p = 0; p < PRODUCTS; p++)
        if (n->f8_gemm[p])
            return true;
    return false;
}

bool student_f8_any(const struct net *n)
{
    return n->f8_head || in_layers(n);
}

static int64_t head_elements(const struct net *n)
{
    return (int64_t)n->c.vocab_size * n->c.hidden_size;
}

int64_t student_f8_head_weights(const struct net *n)
{
    return n->f8_head ? head_elements(n) : 0;
}

int64_t student_f8_weights(const struct net *n)
{
    int64_t elements = 0;
    for (int p = 0; p < PRODUCTS; p++) {
        const struct linear l = product_shape(n, 1, (enum product)p);
        if (n->f8_gemm[p])
            elements += (int64_t)l.in * l.out;
    }
    return n->c.layers * elements;
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
    /* Logits are made of as many rows of the head as are wanted. */
    const int multiple = f8_multiple(n->f8_scales);
    int rc = n->f8_head ? check_matrix(multiple, multiple, n->c.hidden_size) : 0;
    if (rows % multiple != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "--student-dtype fp8 needs a multiple of %d tokens per micro-batch, and batch "
                    "size times sequence length is %lld; change --batch-size or --seq-len",
                    multiple, (long long)rows);
    for (int p = 0; rc == 0 && p < PRODUCTS; p++) {
        const struct linear l = product_shape(n, 1, (enum product)p);
        if (n->f8_gemm[p])
            rc = check_matrix(multiple, l.out, l.in);
    }
    return rc;
}

static void name_add(struct net *n, const char *before, const char *name)
{
    const size_t used = strlen(n->f8_names);
    snprintf(n->f8_names + used, sizeof n->f8_names - used, "%s%s", used > 0 ? before : "", name);
}

/* Fills f8_gemm, f8_head and f8_names. */
static void choose(struct net *n, int64_t least)
{
    *n->f8_names = '\0';
    for (int p = 0; p < PRODUCTS; p++) {
        const struct linear l = product_shape(n, 1, (enum product)p);
        n->f8_gemm[p] = least > 0 && (int64_t)l.in * l.out >= least &&
                        !is_refused(net_f8_refused(n, (enum product)p));
        if (!n->f8_gemm[p])
            continue;
        if (!*n->f8_names)
            name_add(n, "", "in each of the student's layers:");
        name_add(n, " ", product_name((enum product)p));
    }
    n->f8_head = least > 0 && head_elements(n) >= least && !is_refused(logits_refused(n));
    if (n->f8_head)
        name_add(n, "; ", "in the LM head: logits");
}

static bool any_refused(const struct net *n)
{
    bool any = is_refused(logits_refused(n));
    for (int p = 0; p < PRODUCTS; p++)
        any |= is_refused(net_f8_refused(n, (enum product)p));
    return any;
}

int student_f8_choose(struct net *n, int64_t least, int64_t rows)
{
    choose(n, least);
    if (least == 0)
        return 0;
    if (!student_f8_any(n) && any_refused(n))
        return fail(NJ_E_UNSUPPORTED,
                    "--student-dtype fp8: cuBLASLt has no FP8 algorithm for any of this student's "
                    "GEMMs on this GPU; leave --student-dtype out");
    if (!student_f8_any(n))
        return fail(NJ_E_UNSUPPORTED,
                    "--student-dtype fp8: all matrices of this student have fewer than %lld "
                    "elements, and their GEMMs are faster without FP8; leave --student-dtype out",
                    (long long)least);
    return check_sizes(n, rows);
}

bool student_f8_on(const struct net *n, const struct acts *a, enum product which)
{
    return a->mode == ACTS_TRAIN && n->f8_gemm[which];
}

bool student_f8_made(const struct net *n, const struct acts *a, enum product which)
{
    if (n->lora || which == PRODUCT_O || !student_f8_on(n, a, which))
        return false;
    return which != PRODUCT_DOWN ||
           (n->c.intermediate_size <= F8_WIDEST_ACTIVATION && student_f8_on(n, a, PRODUCT_GATE_UP));
}

/* The largest of what the GEMMs of a layer need. */
struct most {
    int in, out;
    size_t weight;
};

static struct most most_of(const struct net *n)
{
    struct most m = {0};
    for (int p = 0; p < PRODUCTS; p++) {
        const struct linear l = product_shape(n, 1, (enum product)p);
        const size_t weight = size_mul((size_t)l.in, (size_t)l.out);
        if (!n->f8_gemm[p])
            continue;
        m.in = l.in > m.in ? l.in : m.in;
        m.out = l.out > m.out ? l.out : m.out;
        m.weight = weight > m.weight ? weight : m.weight;
    }
    return m;
}

static size_t top_bytes(const struct net *n)
{
    return size_product((size_t)n->c.layers, PRODUCTS * F8_OPERANDS, sizeof(float));
}

float *student_f8_top(const struct acts *a, int layer, enum product which, enum f8_operand of)
{
    return a->f8.top + (layer * PRODUCTS + (int)which) * F8_OPERANDS + (int)of;
}

void student_f8_begin_backward(struct work *r, const struct net *n, const struct acts *a)
{
    if (a->mode == ACTS_TRAIN && in_layers(n))
        OP(r, nj_zero(r->s, a->f8.top, top_bytes(n)));
}

void student_f8_carve(const struct net *n, int rows, struct carve *m, struct acts *a)
{
    const struct most most = most_of(n);
    const size_t in = size_mul((size_t)rows, (size_t)most.in);
    const size_t out = size_mul((size_t)rows, (size_t)most.out);
    a->x = f8_room(n->f8_scales, in, rows, most.in, m);
    a->f8.dy = f8_room(n->f8_scales, out, rows, most.out, m);
    a->f8.dgu = f8_room(n->f8_scales, out, rows, most.out, m);
    a->f8.w = f8_room(n->f8_scales, most.weight, most.out, most.in, m);
    a->f8.xt = f8_room(n->f8_scales, in, most.in, rows, m);
    a->f8.dyt = f8_room(n->f8_scales, out, most.out, rows, m);
    a->f8.wt = f8_room(n->f8_scales, most.weight, most.in, most.out, m);
    a->f8.top = carve_take(m, top_bytes(n));
}

static void quantize(struct work *r, const struct net *n, const struct f8_matrix *to, float *top,
                     const void *x, int rows, int columns)
{
    OP(r, nj_quantize_rows(r->s, n->T, to->q, to->scale, top, x, rows, columns));
}

static void quantize_weight(struct work *r, const struct net *n, const struct acts *a, int layer,
                            enum product which, float *top)
{
    const struct linear l = product_shape(n, 1, which);
    quantize(r, n, &a->f8.w, top, net_layer_matrix(n, layer, which)->data, l.out, l.in);
}

/* The columns of what has been quantised by rows, with the largest of their scales. */
static void transpose(struct work *r, const struct f8_matrix *to, const struct f8_matrix *from,
                      const float *top, int rows, int columns)
{
    OP(r,
       nj_e4m3_transpose(r->s, NJ_F32, to->q, to->scale, from->q, from->scale, top, rows, columns));
}

void student_f8_fwd(struct work *r, const struct net *n, const struct acts *a, int layer,
                    enum product which, void *y, const void *x)
{
    struct linear l = product_shape(n, acts_rows(a), which);
    l.refused = net_f8_refused(n, which);
    if (!student_f8_made(n, a, which))
        quantize(r, n, &a->x, NULL, x, l.rows, l.in);
    quantize_weight(r, n, a, layer, which, NULL);
    linear_f8(r, &l, y, &a->x, &a->f8.w);
}

/* Those of gate and up come from the kernel that makes them, while those that it reads are still needed. */
static const struct f8_matrix *gradient_of(const struct acts *a, enum product which)
{
    return which == PRODUCT_GATE_UP ? &a->f8.dgu : &a->f8.dy;
}

void student_f8_gradient(struct work *r, const struct net *n, const struct acts *a, int layer,
                         enum product which, const void *dy)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    quantize(r, n, gradient_of(a, which), student_f8_top(a, layer, which, F8_DY), dy, l.rows,
             l.out);
}

void student_f8_dx(struct work *r, const struct net *n, const struct acts *a, int layer,
                   enum product which, void *dx)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    const struct linear back = {n->T,  l.rows,      l.in,
                                l.out, .ldy = l.in, .refused = net_f8_refused(n, which)};
    float *top = student_f8_top(a, layer, which, F8_W);
    quantize_weight(r, n, a, layer, which, top);
    transpose(r, &a->f8.wt, &a->f8.w, top, l.out, l.in);
    linear_f8(r, &back, dx, gradient_of(a, which), &a->f8.wt);
}

void student_f8_dw(struct work *r, const struct net *n, const struct acts *a, int layer,
                   enum product which, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    const struct linear sum = {NJ_F32,
                               l.out,
                               l.in,
                               l.rows,
                               .ldy = l.in,
                               .add = r->add,
                               .one_scale = true,
                               .refused = net_f8_refused(n, which)};
    float *x_top = student_f8_top(a, layer, which, F8_X);
    const float *dy_top = student_f8_top(a, layer, which, F8_DY);
    if (!student_f8_made(n, a, which))
        quantize(r, n, &a->x, x_top, x, l.rows, l.in);
    transpose(r, &a->f8.xt, &a->x, x_top, l.rows, l.in);
    transpose(r, &a->f8.dyt, gradient_of(a, which), dy_top, l.rows, l.out);
    linear_f8(r, &sum, net_layer_matrix(n, layer, which)->grad, &a->f8.dyt, &a->f8.xt);
}

bool student_f8_head_on(const struct net *n, const struct acts *a)
{
    return a->mode == ACTS_TRAIN && n->f8_head;
}

void student_f8_head_carve(const struct net *n, int chunk, int ld, struct carve *m,
                           struct f8_head *out)
{
    out->w = f8_rows(n->f8_scales, ld, n->c.hidden_size, m);
    out->x = f8_rows(n->f8_scales, chunk, n->c.hidden_size, m);
    out->w_top = carve_take(m, sizeof *out->w_top);
    out->x_top = carve_take(m, sizeof *out->x_top);
    out->dy_scale = carve_take(m, sizeof *out->dy_scale);
}

bool student_f8_head_carve_gradients(const struct net *n, int chunk, int ld, struct carve from,
                                     size_t room, struct f8_head *out)
{
    const int C = n->c.hidden_size;
    /* That of the logits has one scale. */
    if (n->f8_scales == NJ_F8_BLOCKS || is_refused(gradients_refused(n)))
        return false;
    out->wt = f8_rows(n->f8_scales, C, ld, &from);
    out->xt = f8_rows(n->f8_scales, C, chunk, &from);
    out->dyt = (struct f8_matrix){.rows = ld, .columns = chunk};
    out->dyt.q = carve_take(&from, size_mul((size_t)ld, (size_t)chunk));
    out->dyt.scale = out->dy_scale;
    return from.used <= room;
}

void student_f8_head_name(struct net *n, const struct f8_head *h)
{
    if (h->gradients)
        name_add(n, " ", "and gradients");
}

void student_f8_head_weight(struct work *r, const struct net *n, const struct f8_head *h)
{
    const int ld = h->w.rows, C = h->w.columns;
    const int rows = n->c.vocab_size < ld ? n->c.vocab_size : ld;
    quantize(r, n, &h->w, NULL, n->head->data, rows, C);
    if (h->gradients)
        OP(r, nj_e4m3_top(r->s, NJ_F32, h->w_top, h->w.scale, rows));
    if (rows == ld)
        return;
    OP(r, nj_zero(r->s, h->w.q + (size_t)rows * (size_t)C, (size_t)(ld - rows) * (size_t)C));
    OP(r, nj_zero(r->s, h->w.scale + rows, (size_t)(ld - rows) * sizeof *h->w.scale));
}

void student_f8_head_logits(struct work *r, const struct net *n, const struct f8_head *h, void *y,
                            const void *x)
{
    const struct linear l = {n->T,         h->x.rows,        h->w.rows,
                             h->w.columns, .ldy = h->w.rows, .refused = logits_refused(n)};
    quantize(r, n, &h->x, NULL, x, l.rows, l.in);
    linear_f8(r, &l, y, &h->x, &h->w);
}

static void head_dw(struct work *r, const struct net *n, const struct f8_head *h, int vocab,
                    const char *dy, int64_t ld, bool add)
{
    const int chunk = h->x.rows, C = h->x.columns;
    const struct linear sum = {NJ_F32,
                               vocab,
                               C,
                               chunk,
                               .ldy = C,
                               .add = add,
                               .one_scale = true,
                               .x_e5m2 = true,
                               .refused = gradients_refused(n)};
    OP(r, nj_e5m2_transpose(r->s, NJ_F32, h->dyt.q, dy, chunk, h->dyt.rows, (int)ld));
    OP(r, nj_e4m3_top(r->s, NJ_F32, h->x_top, h->x.scale, chunk));
    transpose(r, &h->xt, &h->x, h->x_top, chunk, C);
    linear_f8(r, &sum, n->head->grad, &h->dyt, &h->xt);
}

void student_f8_head_backward(struct work *r, const struct net *n, const struct f8_head *h,
                              int vocab, void *dx, char *dy, int64_t ld, bool add)
{
    const int columns = h->w.rows, C = h->w.columns;
    const struct linear back = {n->T,
                                h->x.rows,
                                C,
                                columns,
                                .ldy = C,
                                .ldx = ld,
                                .one_scale = true,
                                .x_e5m2 = true,
                                .refused = gradients_refused(n)};
    const struct f8_matrix rows = {h->x.rows, columns, dy, h->dy_scale, NULL};
    if (n->head->grad)
        head_dw(r, n, h, vocab, dy, ld, add);
    transpose(r, &h->wt, &h->w, h->w_top, columns, C);
    linear_f8(r, &back, dx, &rows, &h->wt);
}

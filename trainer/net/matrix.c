/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c: functions for matrices of all formats, and the plain format.
 */
#include "net/matrix.h"

#include "base/checked.h"
#include "nojit_ops.h"

size_t dtype_bytes(enum nj_dtype T)
{
    return T == NJ_F32 ? 4 : 2;
}

int64_t matrix_elements(const struct matrix *m)
{
    return (int64_t)m->rows * m->cols;
}

float matrix_scale(const struct matrix *m)
{
    return m->scale != 0 ? m->scale : 1;
}

bool matrix_e4m3(const struct matrix *m, const struct matmul *p)
{
    return m->format->e4m3 || (m->format->e4m3_in_training && p->training);
}

struct matmul matrix_matmul(const struct matrix *m, int rows)
{
    return (struct matmul){.rows = rows, .out = m->rows, .ldy = m->rows};
}

void matrix_fwd(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                const void *x)
{
    m->format->fwd(r, m, p, y, x);
}

void matrix_gradient(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy)
{
    if (m->format->gradient)
        m->format->gradient(r, m, p, dy);
}

void matrix_dx(struct work *r, const struct matrix *m, const struct matmul *p, void *dx,
               const void *dy)
{
    if (m->format->dx)
        m->format->dx(r, m, p, dx, dy);
    else if (r->rc == 0)
        r->rc = NJ_E_UNSUPPORTED;
}

void matrix_dw(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
               const void *x)
{
    if (m->grad)
        m->format->dw(r, m, p, dy, x);
}

struct linear matrix_shape(const struct matrix *m, const struct matmul *p)
{
    return (struct linear){m->T, p->rows, p->out, m->cols, .ldy = p->ldy, .scale = m->scale};
}

void matrix_carve_plain(struct matrix *m, struct carve *c)
{
    m->data = carve_take(c, size_product((size_t)m->rows, (size_t)m->cols, dtype_bytes(m->T)));
}

const void *matrix_weight_plain(struct work *r, const struct matrix *m, int first, int rows, int at)
{
    (void)r;
    (void)rows;
    (void)at;
    return m->data + (size_t)first * (size_t)m->cols * dtype_bytes(m->T);
}

void matrix_gather_plain(struct work *r, const struct matrix *m, void *dst, const int32_t *ids,
                         int rows, float scale)
{
    OP(r, nj_row_gather(r->s, m->T,
                        &(struct nj_row_gather){.dst = dst,
                                                .src = m->data,
                                                .index = ids,
                                                .M = rows,
                                                .R = m->rows,
                                                .C = m->cols,
                                                .scale = scale}));
}

void matrix_fwd_plain(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                      const void *x)
{
    const struct linear l = matrix_shape(m, p);
    linear_fwd(r, &l, y, x, m->data);
}

void matrix_dx_plain(struct work *r, const struct matrix *m, const struct matmul *p, void *dx,
                     const void *dy)
{
    const struct linear l = matrix_shape(m, p);
    linear_dx(r, &l, dx, dy, m->data);
}

void matrix_dw_plain(struct work *r, const struct matrix *m, const struct matmul *p, const void *dy,
                     const void *x)
{
    const struct linear l = matrix_shape(m, p);
    linear_dw(r, &l, m->grad, dy, x, p->add);
}

const struct matrix_format matrix_plain = {
    .name = "plain",
    .carve = matrix_carve_plain,
    .weight = matrix_weight_plain,
    .gather = matrix_gather_plain,
    .fwd = matrix_fwd_plain,
    .dx = matrix_dx_plain,
    .dw = matrix_dw_plain,
};

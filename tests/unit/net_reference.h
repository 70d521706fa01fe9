/* SPDX-License-Identifier: Apache-2.0
 *
 * net_reference.h: what a net computes, in double, one row and one head after another, from the features of its blocks
 * alone.
 */
#ifndef NOJIT_TESTS_NET_REFERENCE_H
#define NOJIT_TESTS_NET_REFERENCE_H

#include "net_fixture.h"

enum { REFERENCE_WIDEST = 2048 };
typedef double reference_rows[ROWS][REFERENCE_WIDEST];

/* One block of a net, or what is outside of the layers. */
struct reference {
    const struct net *n;
    const struct rows *rows;
    int layer;
    const struct block *b;
};

static inline const float *reference_weight(const struct reference *f, enum tensor_role role)
{
    return net_weight(f->n, f->n->p.layer[f->layer][role]);
}

/* Return the weight that is one tensor in some files, and begins with another one in others. */
static inline const float *reference_joined(const struct reference *f, enum tensor_role fused,
                                            enum tensor_role first)
{
    const float *w = reference_weight(f, fused);
    return w ? w : reference_weight(f, first);
}

static inline double reference_factor(float factor)
{
    return factor != 0 ? (double)factor : 1;
}

/* Compute y = x W^T + bias. */
static inline void reference_product(double *y, const double *x, const float *w, const float *bias,
                                     int64_t rows, int columns)
{
    for (int64_t r = 0; r < rows; r++) {
        y[r] = bias ? (double)bias[r] : 0;
        for (int c = 0; c < columns; c++)
            y[r] += x[c] * (double)w[r * columns + c];
    }
}

static inline double reference_rstd(float eps, const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += x[c] * x[c];
    return 1 / sqrt(sum / (double)count + (double)eps);
}

/* Return element i of a gain; NULL: it is the offset. */
static inline double reference_gain(const float *gain, float offset, int64_t i)
{
    return (gain ? (double)gain[i] : 0) + (double)offset;
}

static inline void reference_norm(float eps, double *y, const double *x, const float *gain,
                                  float offset, int64_t count)
{
    const double rstd = reference_rstd(eps, x, count);
    for (int64_t c = 0; c < count; c++)
        y[c] = x[c] * rstd * reference_gain(gain, offset, c);
}

static inline void reference_rotate(const struct reference *f, double *head, int pos)
{
    const struct rope *r = &f->n->c.arch.rope[f->b->rope];
    const int D = f->b->head_dim, R = rope_rotary(r, D);
    for (int i = 0; i < R / 2; i++) {
        double *lo = head + (r->neighbors ? 2 * i : i);
        double *hi = r->neighbors ? lo + 1 : lo + R / 2;
        const double slow = rope_slowing(r, D, i, f->n->c.max_positions);
        const double angle = pos * rope_frequency(r, D, i) * slow, a = *lo, b = *hi;
        *lo = (double)rope_amplitude(r) * (a * cos(angle) - b * sin(angle));
        *hi = (double)rope_amplitude(r) * (b * cos(angle) + a * sin(angle));
    }
}

/* Norm and rotate the heads of queries, or those of keys, of a row. */
static inline void reference_heads(const struct reference *f, double *x, int heads,
                                   const float *gain, int pos)
{
    const struct block *b = f->b;
    const int D = b->head_dim;
    const bool last = block_has(b, FEATURE_QK_GAIN_LAST);
    if (block_has(b, FEATURE_QK_NORM_ROW))
        reference_norm(f->n->c.rms_eps, x, x, gain, b->gain_offset, (int64_t)heads * D);
    for (double *head = x; head < x + (ptrdiff_t)heads * D; head += D) {
        const double rstd =
            block_has(b, FEATURE_QK_NORM) ? reference_rstd(f->n->c.rms_eps, head, D) : 1;
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < D && block_has(b, FEATURE_QK_NORM) && pass == (int)last; i++)
                head[i] *= rstd * reference_gain(gain, b->gain_offset, i);
            if (pass == 0)
                reference_rotate(f, head, pos);
        }
    }
}

/* Attend from a head of row i to the rows that it sees. */
static inline void reference_attend(const struct reference *f, reference_rows qkv, int i, int head,
                                    double *out)
{
    const struct block *b = f->b;
    const int D = b->head_dim, key = b->heads + head / (b->heads / b->kv_heads);
    const float *sinks = reference_weight(f, ROLE_SINKS);
    double total = sinks ? exp((double)sinks[head]) : 0;
    int first = f->rows->doc_start[i];
    if (b->window > 0 && i - b->window + 1 > first)
        first = i - b->window + 1;
    memset(out, 0, (size_t)D * sizeof *out);
    for (int j = first; j <= i; j++) {
        const double *q = qkv[i] + (ptrdiff_t)head * D, *k = qkv[j] + (ptrdiff_t)key * D;
        const double *v = k + (ptrdiff_t)b->kv_heads * D;
        double score = 0;
        for (int d = 0; d < D; d++)
            score += q[d] * k[d];
        const double weight = exp(score * (double)block_score_scale(b));
        total += weight;
        for (int d = 0; d < D; d++)
            out[d] += weight * v[d];
    }
    for (int d = 0; d < D; d++)
        out[d] /= total;
}

static inline void reference_attention(const struct reference *f, reference_rows x,
                                       reference_rows y)
{
    static reference_rows qkv;
    static double o[REFERENCE_WIDEST], gate[REFERENCE_WIDEST];
    const struct block *b = f->b;
    const int D = b->head_dim, C = f->n->c.hidden_size, q = b->heads * D;
    const float *wg = reference_weight(f, ROLE_ATTENTION_GATE);
    for (int i = 0; i < ROWS; i++) {
        const int pos = f->rows->pos[i];
        reference_product(qkv[i], x[i], reference_joined(f, ROLE_QKV_WEIGHT, ROLE_Q_WEIGHT),
                          reference_weight(f, ROLE_Q_BIAS), block_qkv_size(b), C);
        reference_heads(f, qkv[i], b->heads, reference_weight(f, ROLE_Q_NORM), pos);
        reference_heads(f, qkv[i] + q, b->kv_heads, reference_weight(f, ROLE_K_NORM), pos);
    }
    for (int i = 0; i < ROWS; i++) {
        for (int h = 0; h < b->heads; h++)
            reference_attend(f, qkv, i, h, o + (ptrdiff_t)h * D);
        if (wg)
            reference_product(gate, x[i], wg, NULL, q, C);
        for (int c = 0; wg && c < q; c++)
            o[c] /= 1 + exp(-gate[c]);
        reference_product(y[i], o, reference_weight(f, ROLE_O_WEIGHT),
                          reference_weight(f, ROLE_O_BIAS), C, q);
    }
}

static inline void reference_glu(const struct reference *f, reference_rows x, reference_rows y)
{
    static double gu[REFERENCE_WIDEST];
    const int I = f->b->ffn_size, C = f->n->c.hidden_size;
    const float *gate = reference_weight(f, ROLE_GATE_BIAS),
                *up = reference_weight(f, ROLE_UP_BIAS);
    for (int i = 0; i < ROWS; i++) {
        reference_product(gu, x[i], reference_joined(f, ROLE_GATE_UP_WEIGHT, ROLE_GATE_WEIGHT),
                          NULL, 2 * (int64_t)I, C);
        for (int c = 0; c < I && gate; c++) {
            gu[c] += (double)gate[c];
            gu[I + c] += (double)up[c];
        }
        for (int c = 0; c < I; c++)
            gu[c] *= gu[I + c] / (1 + exp(-gu[c]));
        reference_product(y[i], gu, reference_weight(f, ROLE_DOWN_WEIGHT),
                          reference_weight(f, ROLE_DOWN_BIAS), C, I);
    }
}

static inline void reference_conv(const struct reference *f, reference_rows x, reference_rows y)
{
    static reference_rows thirds;
    static double out[REFERENCE_WIDEST];
    const int X = f->b->channels, L = f->b->taps, C = f->n->c.hidden_size;
    const float *taps = reference_weight(f, ROLE_CONV_TAPS);
    for (int i = 0; i < ROWS; i++)
        reference_product(thirds[i], x[i], reference_weight(f, ROLE_CONV_IN_WEIGHT), NULL,
                          3 * (int64_t)X, C);
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < X; c++) {
            double sum = 0;
            for (int t = 0; t < L; t++) {
                const int j = i - L + 1 + t;
                if (j >= f->rows->doc_start[i])
                    sum += (double)taps[c * L + t] * thirds[j][c] * thirds[j][2 * X + c];
            }
            out[c] = sum * thirds[i][X + c];
        }
        reference_product(y[i], out, reference_weight(f, ROLE_CONV_OUT_WEIGHT), NULL, C, X);
    }
}

/* Compute the rows of queries, keys and values of a delta rule from those of its product. */
static inline void reference_delta_conv(const struct reference *f, reference_rows in,
                                        reference_rows out)
{
    const int X = block_channels(f->b), L = f->b->taps;
    const float *taps = reference_weight(f, ROLE_DELTA_TAPS);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < X; c++) {
            double sum = 0;
            for (int t = 0; t < L; t++)
                if (i - L + 1 + t >= f->rows->doc_start[i])
                    sum += (double)taps[c * L + t] * in[i - L + 1 + t][c];
            out[i][c] = sum / (1 + exp(-sum));
        }
}

static inline double reference_length(const double *x, int count)
{
    double squares = 0;
    for (int d = 0; d < count; d++)
        squares += x[d] * x[d];
    return sqrt(squares + 1e-6);
}

/* Compute the output of value head h in row i from its state, [D of values, D of keys], which is updated. */
static inline void reference_delta_row(const struct reference *f, const double *row,
                                       const double *steps, int h, double (*state)[64], double *out)
{
    const struct block *b = f->b;
    const int D = b->head_dim, H = b->heads, K = b->kv_heads, key = h / (H / K);
    const double *q = row + (ptrdiff_t)key * D, *k = q + (ptrdiff_t)K * D;
    const double *v = row + (ptrdiff_t)(2 * K + h) * D;
    const double rate = exp((double)reference_weight(f, ROLE_DELTA_LOG)[h]);
    const double step = steps[H + h] + (double)reference_weight(f, ROLE_DELTA_STEP)[h];
    const double beta = 1 / (1 + exp(-steps[h])), decay = exp(-rate * log1p(exp(step)));
    const double of_q = reference_length(q, D) * sqrt(D), of_k = reference_length(k, D);
    for (int d = 0; d < D; d++) {
        double seen = 0;
        for (int e = 0; e < D; e++) {
            state[d][e] *= decay;
            seen += state[d][e] * k[e] / of_k;
        }
        out[d] = 0;
        for (int e = 0; e < D; e++) {
            state[d][e] += beta * (v[d] - seen) * k[e] / of_k;
            out[d] += state[d][e] * q[e] / of_q;
        }
    }
}

static inline void reference_delta(const struct reference *f, reference_rows x, reference_rows y)
{
    static reference_rows in, qkv, steps, o;
    static double state[64][64];
    const struct block *b = f->b;
    const int D = b->head_dim, H = b->heads, X = block_channels(b), C = f->n->c.hidden_size;
    for (int i = 0; i < ROWS; i++) {
        reference_product(in[i], x[i], reference_weight(f, ROLE_DELTA_QKV_WEIGHT), NULL,
                          X + (int64_t)H * D, C);
        reference_product(steps[i], x[i], reference_weight(f, ROLE_DELTA_B_WEIGHT), NULL,
                          2 * (int64_t)H, C);
    }
    reference_delta_conv(f, in, qkv);
    for (int h = 0; h < H; h++)
        for (int i = 0; i < ROWS; i++) {
            double *head = o[i] + (ptrdiff_t)h * D;
            const double *z = in[i] + X + (ptrdiff_t)h * D;
            if (i == f->rows->doc_start[i])
                memset(state, 0, sizeof state);
            reference_delta_row(f, qkv[i], steps[i], h, state, head);
            reference_norm(f->n->c.rms_eps, head, head, reference_weight(f, ROLE_DELTA_GAIN), 0, D);
            for (int d = 0; d < D; d++)
                head[d] *= z[d] / (1 + exp(-z[d]));
        }
    for (int i = 0; i < ROWS; i++)
        reference_product(y[i], o[i], reference_weight(f, ROLE_DELTA_OUT_WEIGHT), NULL, C, H * D);
}

/* Add a block to the stream s. */
static inline void reference_block(const struct reference *f, reference_rows s)
{
    static reference_rows x, y;
    const struct net *n = f->n;
    const int C = n->c.hidden_size;
    const float offset = f->b->gain_offset, eps = n->c.rms_eps;
    const float after = n->c.after_eps != 0 ? n->c.after_eps : eps;
    const struct block_matrices *all = &block_matrices[f->b->kind];
    memcpy(x, s, sizeof x);
    for (int i = 0; i < ROWS && block_has(f->b, FEATURE_NORM_BEFORE); i++)
        reference_norm(eps, x[i], s[i], reference_weight(f, all->norm), offset, C);
    static void (*const block[BLOCK_KINDS])(const struct reference *, reference_rows,
                                            reference_rows) = {
        [BLOCK_ATTENTION] = reference_attention,
        [BLOCK_GLU] = reference_glu,
        [BLOCK_CONV] = reference_conv,
        [BLOCK_DELTA] = reference_delta,
    };
    block[f->b->kind](f, x, y);
    for (int i = 0; i < ROWS; i++) {
        if (block_has(f->b, FEATURE_NORM_AFTER))
            reference_norm(after, y[i], y[i], reference_weight(f, all->norm_after), offset, C);
        for (int c = 0; c < C; c++)
            s[i][c] += reference_factor(n->c.residual_scale) * y[i][c];
    }
}

/* Compute the hidden rows behind the final norm. */
static inline void reference_hidden(const struct net *n, const struct rows *rows, reference_rows s)
{
    const float *table = net_weight(n, n->p.embed), *gain = net_weight(n, n->p.norm);
    const int C = n->c.hidden_size;
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < C; c++)
            s[i][c] = reference_factor(n->c.embedding_scale) *
                      (double)table[(ptrdiff_t)rows->ids[i] * C + c];
        if (n->c.embed_normed)
            reference_norm(n->c.rms_eps, s[i], s[i], NULL, 1, C);
    }
    for (int l = 0; l < n->c.layers; l++) {
        const struct layer *layer = arch_layer(&n->c.arch, l);
        for (int b = 0; b < layer->blocks; b++)
            reference_block(&(struct reference){n, rows, l, &layer->block[b]}, s);
    }
    for (int i = 0; i < ROWS; i++)
        reference_norm(n->c.rms_eps, s[i], s[i], gain, n->c.gain_offset, C);
}

static inline void reference_logits(const struct net *n, const double *hidden,
                                    double logits[VOCABULARY])
{
    const double cap = (double)n->c.logit_cap;
    reference_product(logits, hidden, net_weight(n, n->p.head), NULL, VOCABULARY, n->c.hidden_size);
    for (int v = 0; v < VOCABULARY; v++) {
        logits[v] *= reference_factor(n->c.logit_scale);
        logits[v] = cap > 0 ? cap * tanh(logits[v] / cap) : logits[v];
    }
}

#endif

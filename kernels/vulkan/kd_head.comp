// SPDX-License-Identifier: Apache-2.0
#include "softmax.glsl"
#include "step_state.glsl"

// One token: the logarithms of its probabilities p (teacher) and q (student), and of m = beta p + (1 - beta) q, with
// which both are compared.
struct token {
    float log_p, log_q, log_m;
};

token token_of(softmax teacher, softmax student, float t_logit, float s_logit)
{
    token r = token(log_prob(teacher, t_logit), log_prob(student, s_logit), 0.0);
    const float d = r.log_p - r.log_q;
    if (beta == 0.0)
        r.log_m = r.log_q;
    else if (beta == 1.0)
        r.log_m = r.log_p;
    else if (d > 0.0) // relative to the larger of p and q, so that nothing overflows
        r.log_m = r.log_p + nj_log(beta + (1.0 - beta) * nj_exp(-d));
    else
        r.log_m = r.log_q + nj_log1p(beta * nj_expm1(d));
    return r;
}

// Clear the columns from `first` on, which hold no gradient.
void clear_row(nj_t row, int first)
{
    for (int v = first + thread(); v < Vs; v += NJ_THREADS)
        put(row, v, 0.0);
}

void store_results(float divergence, float loss, float teacher_entropy, bool same)
{
    if (thread() != 0)
        return;
    kd.v[block_x()] = divergence;
    ce.v[block_x()] = loss;
    entropy.v[block_x()] = teacher_entropy;
    agree.v[block_x()] = same ? 1.0 : 0.0;
}

void cross_entropy(nj_t row, int hot, float scale)
{
    const softmax q = row_softmax(row_top(row, V), row, V, 1.0);
    const float loss = -log_prob(q, get(row, hot));
    barrier(); // all threads have read the logit of the target
    for (int v = thread(); v < V; v += NJ_THREADS)
        put(row, v,
            scale * cap_slope(get(row, v), cap) *
                (nj_exp(log_prob(q, get(row, v))) - (v == hot ? 1.0 : 0.0)));
    store_results(0.0, loss, 0.0, false);
}

void distil(nj_t row, nj_t teacher_row, int hot, float scale)
{
    const softmax top = row_top(row, V);
    const softmax hard = row_softmax(top, row, V, 1.0), student = row_softmax(top, row, V, tau);
    const softmax teacher = row_softmax(row_top(teacher_row, V), teacher_row, V, tau);
    float from_p = 0.0, from_q = 0.0, information = 0.0; // KL(p || m), KL(q || m)
    for (int v = thread(); v < V; v += NJ_THREADS) {
        const token x = token_of(teacher, student, get(teacher_row, v), get(row, v));
        const float p = nj_exp(x.log_p);
        from_p += kl_term(p, x.log_p, x.log_m);
        if (beta > 0.0)
            from_q += kl_term(nj_exp(x.log_q), x.log_q, x.log_m);
        information -= kl_term(p, x.log_p, 0.0);
    }
    from_p = block_sum(from_p);
    from_q = block_sum(from_q);
    information = block_sum(information);
    const float weight_p = beta == 0.0 ? 1.0 : beta, weight_q = beta == 1.0 ? 1.0 : 1.0 - beta;
    store_results(weight_p * from_p + weight_q * from_q, -log_prob(hard, get(row, hot)),
                  information, student.argmax == teacher.argmax);
    barrier(); // all threads have read the logit of the target
    for (int v = thread(); v < V; v += NJ_THREADS) {
        const token x = token_of(teacher, student, get(teacher_row, v), get(row, v));
        const float q = nj_exp(x.log_q);
        const float slope =
            beta == 0.0 ? q - nj_exp(x.log_p) : weight_q * q * (x.log_q - x.log_m - from_q);
        const float hard_slope = nj_exp(log_prob(hard, get(row, v))) - (v == hot ? 1.0 : 0.0);
        put(row, v,
            scale * cap_slope(get(row, v), cap) *
                ((1.0 - ratio) * hard_slope + ratio * tau * slope));
    }
}

void nj_kd_head()
{
    const int hot = target.v[block_x()];
    const float scale = state.v[STEP_INV_VALID] * state.v[STEP_LOSS_SCALE];
    nj_t row = from_t(s, int64_t(block_x()) * Vs);
    if (hot < 0) {
        clear_row(row, 0);
        store_results(0.0, 0.0, 0.0, false);
        return;
    }
    if (given(t))
        distil(row, from_t(t, int64_t(block_x()) * Vt), hot, scale);
    else
        cross_entropy(row, hot, scale);
    clear_row(row, V);
}

// SPDX-License-Identifier: Apache-2.0
#include "softmax.glsl"

void store_results(float forward_kl, float reverse_kl, float information, float is_counted)
{
    if (thread() != 0)
        return;
    forward.v[block_x()] = forward_kl;
    reverse.v[block_x()] = reverse_kl;
    entropy.v[block_x()] = information;
    counted.v[block_x()] = is_counted;
}

void nj_kl_rows()
{
    nj_t row = from_t(s, int64_t(block_x()) * Vs), teacher_row = from_t(t, int64_t(block_x()) * Vt);
    if (target.v[block_x()] < 0) {
        store_results(0.0, 0.0, 0.0, 0.0);
        return;
    }
    const softmax student = row_softmax(row_top(row, V), row, V, tau);
    const softmax teacher = row_softmax(row_top(teacher_row, V), teacher_row, V, tau);
    float from_p = 0.0, from_q = 0.0, information = 0.0;
    for (int v = thread(); v < V; v += NJ_THREADS) {
        const float log_p = log_prob(teacher, get(teacher_row, v)),
                    log_q = log_prob(student, get(row, v));
        const float q = nj_exp(log_q);
        from_p += nj_exp(log_p) * (log_p - log_q);
        from_q += q * (log_q - log_p);
        information -= q * log_q;
    }
    from_p = block_sum(from_p);
    from_q = block_sum(from_q);
    store_results(from_p, from_q, block_sum(information), 1.0);
}

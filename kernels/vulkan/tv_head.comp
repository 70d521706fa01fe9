// SPDX-License-Identifier: Apache-2.0
#include "softmax.glsl"
#include "step_state.glsl"

void store_results(float distance_tv, float loss, float teacher_entropy, bool same)
{
    if (thread() != 0)
        return;
    tv.v[block_x()] = distance_tv;
    ce.v[block_x()] = loss;
    entropy.v[block_x()] = teacher_entropy;
    agree.v[block_x()] = same ? 1.0 : 0.0;
}

// Write the gradient. h is -1 where the teacher gives a token the higher probability, otherwise 0; `mean` is its mean
// under the student.
void make_gradient(nj_t row, nj_t teacher_row, softmax hard, softmax student, softmax teacher,
                   float mean, int hot, float scale)
{
    for (int v = thread(); v < V; v += NJ_THREADS) {
        const float p = nj_exp(log_prob(teacher, get(teacher_row, v)));
        const float q = nj_exp(log_prob(student, get(row, v)));
        const float h = p > q ? -1.0 : 0.0;
        const float hard_slope = nj_exp(log_prob(hard, get(row, v))) - (v == hot ? 1.0 : 0.0);
        put(row, v,
            scale * cap_slope(get(row, v), cap) *
                ((1.0 - ratio) * hard_slope + ratio * tau * q * (h - mean)));
    }
}

void measure(nj_t row, nj_t teacher_row, int hot, float scale)
{
    const softmax top = row_top(row, V);
    const softmax hard = row_softmax(top, row, V, 1.0), student = row_softmax(top, row, V, tau);
    const softmax teacher = row_softmax(row_top(teacher_row, V), teacher_row, V, tau);
    float apart = 0.0, behind = 0.0, information = 0.0;
    for (int v = thread(); v < V; v += NJ_THREADS) {
        const float log_p = log_prob(teacher, get(teacher_row, v)), p = nj_exp(log_p);
        const float q = nj_exp(log_prob(student, get(row, v)));
        apart += p > q ? p - q : 0.0;
        behind += p > q ? q : 0.0;
        information -= kl_term(p, log_p, 0.0);
    }
    apart = block_sum(apart);
    behind = block_sum(behind);
    information = block_sum(information);
    store_results(apart, -log_prob(hard, get(row, hot)), information,
                  student.argmax == teacher.argmax);
    barrier(); // all threads have read the logit of the target
    if (gradient != 0)
        make_gradient(row, teacher_row, hard, student, teacher, -behind, hot, scale);
}

void nj_tv_head()
{
    const int hot = target.v[block_x()];
    const float scale = state.v[STEP_INV_VALID] * state.v[STEP_LOSS_SCALE];
    nj_t row = from_t(s, int64_t(block_x()) * Vs);
    if (hot < 0)
        store_results(0.0, 0.0, 0.0, false);
    else
        measure(row, from_t(t, int64_t(block_x()) * Vt), hot, scale);
    for (int v = (hot < 0 ? 0 : V) + thread(); v < Vs && gradient != 0; v += NJ_THREADS)
        put(row, v, 0.0);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * test_engine_grad.c: the gradient that the engine computes is the derivative of the loss
 * that it reports.
 */
#include "engine_fixture.h"

/* Larger weights give larger gradients, so that float32 differences can resolve them. Gains and
 * biases, all equal at first, become distinct. */
static void spread_weights(struct engine *e)
{
    uint32_t seed = 11;
    for (int64_t i = 0; i < e->student.p.count; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (i < e->student.p.decayed)
            e->mem.master[i] *= 4.0f;
        else if (strcmp(params_name_at(&e->student.p, i), "padding") != 0)
            e->mem.master[i] += 0.2f * ((float)(seed >> 8) * 0x1p-24f - 0.5f);
    }
}

static double loss_at(struct engine *e, struct data *d)
{
    struct eval_result r;
    ok(engine_eval(e, d, &r));
    return r.loss;
}

/* Gradient of the loss over one pass of d, left in e->mem.grad. */
static void gradient(struct engine *e, struct data *d)
{
    data_seek(d, &(struct data_state){0});
    int64_t valid = 0;
    struct batch b;
    while (data_next(d, &b) == 0)
        valid += b.valid;
    data_seek(d, &(struct data_state){0});
    e->mem.state[NJ_STEP_INV_VALID] = 1.0f / (float)valid;
    while (stage_next(e, d, 0) == 0) {
        struct work w = engine_work(e);
        ok(send_batch(e, 0));
        micro_step(&w, e, e->chunks_of[0], true);
        ok(w.rc);
    }
}

static int64_t steepest(const float *grad, int64_t first, int64_t count)
{
    int64_t best = first;
    for (int64_t i = first; i < first + count; i++)
        if (fabsf(grad[i]) > fabsf(grad[best]))
            best = i;
    return best;
}

/* Central difference with one Richardson step: the error left is of order h^4 and
 * float32 rounding. */
static double difference(struct engine *e, struct data *d, int64_t at)
{
    const float h = 8e-3f, w = e->mem.master[at];
    double slope[2];
    for (int i = 0; i < 2; i++) {
        volatile float up = w + h * (float)(i + 1), down = w - h * (float)(i + 1);
        e->mem.master[at] = up;
        double above = loss_at(e, d);
        e->mem.master[at] = down;
        double below = loss_at(e, d);
        slope[i] = (above - below) / ((double)up - (double)down);
    }
    e->mem.master[at] = w;
    return (4.0 * slope[0] - slope[1]) / 3.0;
}

static void check_gradient(const char *student, const char *teacher, float kd_ratio, float beta)
{
    struct train_options o = small_options;
    o.kd_ratio = kd_ratio;
    o.beta = beta;
    struct engine *e = open_engine(student, teacher, &o);
    struct data *d = open_tokens("masked.bin", &o, true);
    spread_weights(e);
    gradient(e, d);
    for (size_t i = 0; i < e->student.p.specs; i++) {
        const struct tensor_spec *spec = &e->student.p.spec[i];
        int64_t at = steepest(e->mem.grad, e->student.p.first[i], tensor_elements(spec));
        double got = (double)e->mem.grad[at], want = difference(e, d, at);
        if (!(fabs(got - want) <= 0.01 * fabs(want) + 2e-6) || !(fabs(got) > 1e-5))
            fail_msg("%s, element %lld: gradient %.7g, difference quotient %.7g", spec->name,
                     (long long)(at - e->student.p.first[i]), got, want);
    }
    data_close(d);
    engine_destroy(e);
}

static void biased_tied_model(void **state)
{
    (void)state;
    check_gradient("qwen2", "teacher", 0.5f, 0);
}

static void qk_norm_untied_model(void **state)
{
    (void)state;
    check_gradient("qwen3", "teacher", 0.7f, 0);
}

static void reverse_divergence(void **state)
{
    (void)state;
    check_gradient("qwen2", "teacher", 0.9f, 1);
}

static void mixed_divergence(void **state)
{
    (void)state;
    check_gradient("qwen2", "teacher", 0.9f, 0.5f);
}

static void cross_entropy_only(void **state)
{
    (void)state;
    check_gradient("qwen2", NULL, 0.5f, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(biased_tied_model),  cmocka_unit_test(qk_norm_untied_model),
        cmocka_unit_test(reverse_divergence), cmocka_unit_test(mixed_divergence),
        cmocka_unit_test(cross_entropy_only),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}

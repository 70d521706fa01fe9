/* SPDX-License-Identifier: Apache-2.0
 *
 * test_engine_grad.c: the gradient that the engine computes is the derivative of the loss that it reports.
 */
#include "engine_grad.h"

/* Enlarge the weights, and with them the gradients, so that float32 differences can resolve them; make norms and
 * biases, which are all equal at first, distinct. */
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

/* Make the teacher far more confident than the student. TVD has a kink where a token's p equals its q, which falsifies
 * a difference quotient; with such a teacher few tokens are near one. */
static void sharpen_teacher(struct engine *e)
{
    const struct net *n = &e->teacher.net;
    float *gain = (float *)(void *)e->teacher.weights + n->p.norm;
    for (int c = 0; c < n->c.hidden_size; c++)
        gain[c] *= 256.0f;
}

static void check_gradient_of(const char *student, const char *teacher,
                              const struct train_options *given)
{
    struct train_options o = *given;
    /* the test calls gradient(), which adds, and logits must not lie in gradients */
    o.grad_accum = 2;
    struct engine *e = open_engine(student, teacher, &o);
    struct batch_source *d = open_tokens("masked.bin", &o, true);
    spread_weights(e);
    if (o.objective == OBJECTIVE_TVD)
        sharpen_teacher(e);
    gradient(e, d);
    for (size_t i = 0; i < e->student.p.specs; i++) {
        const struct tensor_spec *spec = &e->student.p.spec[i];
        int64_t at = steepest(e->mem.grad, e->student.p.first[i], tensor_elements(spec));
        double got = (double)e->mem.grad[at], want = difference(e, d, at, loss_at);
        if (!(fabs(got - want) <= 0.01 * fabs(want) + 2e-6) || !(fabs(got) > 1e-5))
            fail_msg("%s, element %lld: gradient %.7g, difference quotient %.7g", spec->name,
                     (long long)(at - e->student.p.first[i]), got, want);
    }
    batches_close(d);
    engine_destroy(e);
}

static void check_gradient(const char *student, const char *teacher, float kd_ratio, float beta,
                           enum objective objective)
{
    struct train_options o = small_options;
    o.kd_ratio = kd_ratio;
    o.beta = beta;
    o.objective = objective;
    check_gradient_of(student, teacher, &o);
}

static void gradients_of_a_biased_tied_model_are_derivatives(void **state)
{
    (void)state;
    check_gradient("qwen2", "teacher", 0.5f, 0, OBJECTIVE_KL);
}

static void gradients_of_an_untied_model_with_qk_norms_are_derivatives(void **state)
{
    (void)state;
    check_gradient("qwen3", "teacher", 0.7f, 0, OBJECTIVE_KL);
}

static void gradients_of_reverse_kl_are_derivatives(void **state)
{
    (void)state;
    check_gradient("qwen2", "teacher", 0.9f, 1, OBJECTIVE_KL);
}

static void gradients_of_a_mixed_divergence_are_derivatives(void **state)
{
    (void)state;
    check_gradient("qwen2", "teacher", 0.9f, 0.5f, OBJECTIVE_KL);
}

static void gradients_of_the_total_variation_distance_are_derivatives(void **state)
{
    (void)state;
    check_gradient("qwen2", "teacher", 0.9f, 0, OBJECTIVE_TVD);
}

static void gradients_of_cross_entropy_alone_are_derivatives(void **state)
{
    (void)state;
    check_gradient("qwen2", NULL, 0.5f, 0, OBJECTIVE_KL);
}

static void gradients_of_models_with_gelu_are_derivatives(void **state)
{
    (void)state;
    check_gradient("gelu", "gelu-tanh", 0.5f, 0, OBJECTIVE_KL);
    check_gradient("gelu-tanh", "gelu", 0.5f, 0, OBJECTIVE_KL);
}

/* Each model has a bound and factors of its own; those of the student, whose embedding is its head, differ. */
static void gradients_of_bounded_logits_are_derivatives(void **state)
{
    (void)state;
    static const enum objective objective[] = {OBJECTIVE_KL, OBJECTIVE_TVD};
    struct model_config models[] = {qwen2, teacher_config};
    models[0].logit_cap = 1.5f;
    models[0].logit_scale = 0.6f;
    models[0].embedding_scale = 3;
    models[1].logit_cap = 4;
    models[1].logit_scale = 1.5f;
    struct train_options o = small_options;
    o.given = models;
    for (int i = 0; i < 2; i++) {
        o.objective = objective[i];
        check_gradient_of("qwen2", "teacher", &o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_a_biased_tied_model_are_derivatives),
        cmocka_unit_test(gradients_of_an_untied_model_with_qk_norms_are_derivatives),
        cmocka_unit_test(gradients_of_reverse_kl_are_derivatives),
        cmocka_unit_test(gradients_of_a_mixed_divergence_are_derivatives),
        cmocka_unit_test(gradients_of_the_total_variation_distance_are_derivatives),
        cmocka_unit_test(gradients_of_cross_entropy_alone_are_derivatives),
        cmocka_unit_test(gradients_of_models_with_gelu_are_derivatives),
        cmocka_unit_test(gradients_of_bounded_logits_are_derivatives),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}

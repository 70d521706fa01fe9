/* SPDX-License-Identifier: Apache-2.0
 *
 * test_golden.c: the trainer against PyTorch and transformers in float64 (tests/golden/torch, written by
 * tests/golden/make_golden.py, which describes the files): batches, logits, losses, every gradient, ten optimizer
 * steps; loss and gradient of completions, as in TRL's DistillationTrainer. transformers saved the models, and they are
 * opened like any others. golden_case.h has the comparison.
 */
#include "golden_case.h"

static const struct golden_set torch = {GOLDEN, 13, 256, {1, 2, 5, 10}};

static void batches_have_their_golden_rows(void **state)
{
    (void)state;
    enum { B = 2, S = 96, ARRAYS = 4 };
    static const char *const name[ARRAYS] = {"ids", "target", "pos", "doc_start"};
    struct golden g = {.name = "batches"};
    struct batch_source *d = open_tokens(&(struct train_options){.batch_size = B, .seq_len = S});
    check_ok(st_open_file(GOLDEN "batches.safetensors", &g.want), "batches.safetensors");
    assert_int_equal(batches_rows(d), WINDOWS);
    for (int w = 0; w < WINDOWS; w += B) {
        struct batch b;
        check_ok(batches_next(d, &b), "next batch");
        const int32_t *const got[ARRAYS] = {b.ids, b.target, b.pos, b.doc_start};
        for (int k = 0; k < ARRAYS; k++) {
            float want[B * S];
            const struct tensor *t = find(&g, name[k]);
            assert_int_equal(t->shape[0] * t->shape[1], WINDOWS * S);
            tensor_to_f32(t, w * S, B * S, want);
            for (int i = 0; i < B * S; i++)
                if (got[k][i] != (int32_t)want[i])
                    fail_msg("%s of window %d, place %d is %d, expected %d", name[k], w + i / S,
                             i % S, got[k][i], (int)want[i]);
        }
    }
    tensors_close(&g.want);
    batches_close(d);
}

static void one_step(void **state)
{
    struct golden g = open_case(*state);
    struct step_result r;
    check_ok(engine_step(g.e, g.d, &r), "step");
    check_figures(&g, 1, &r);
    close_case(&g);
}

#define OF_ANSWERS(name)                                                                           \
    {name " gradients", gradients, NULL, NULL, (void *)(uintptr_t)name},                           \
    {                                                                                              \
        name " one step", one_step, NULL, NULL, (void *)(uintptr_t)name                            \
    }

static int begin(void **state)
{
    (void)state;
    return golden_begin(&torch, GOLDEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_have_their_golden_rows),
        OF_CASE("qwen2_forward"),
        OF_CASE("qwen3_padded_teacher"),
        OF_CASE("llama_mixed_accumulated"),
        OF_CASE("qwen2_reverse"),
        OF_CASE("llama_without_teacher"),
        OF_CASE("qwen3_distance"),
        OF_CASE("mistral_windows"),
        OF_CASE("gelu_of_gelu_tanh"),
        OF_CASE("gelu_tanh_of_gelu"),
        OF_ANSWERS("answers_forward"),
        OF_ANSWERS("answers_mixed"),
        OF_ANSWERS("answers_reverse"),
        OF_ANSWERS("answers_teacher_prompts"),
    };
    return cmocka_run_group_tests(tests, begin, golden_end);
}

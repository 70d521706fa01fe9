/* SPDX-License-Identifier: Apache-2.0
 *
 * test_models_apart.c: two documents in a row of a batch, in models whose layers have states, convolutions or experts:
 * the tokens of the first one do not move a bit of the logits of the second one.
 */
#include "engine_fixture.h"

enum { S = 48, FIRST = 29, SECOND = S - FIRST, BYTES = 264 };

/* Compute the logits of the rows of the second document. */
static void logits_of_second(struct engine *e, const int32_t *ids, bool apart, float *out)
{
    static int32_t pos[S], begin[S], row[SECOND];
    float *to[SECOND];
    for (int i = 0; i < S; i++) {
        begin[i] = apart && i >= FIRST ? FIRST : 0;
        pos[i] = i - begin[i];
    }
    for (int i = 0; i < SECOND; i++) {
        row[i] = FIRST + i;
        to[i] = out + (size_t)i * BYTES;
    }
    ok(engine_logits(e, &(struct logits_batch){false, ids, pos, begin, row, to, SECOND}));
}

static void documents_of_mixed_models_do_not_meet(void **state)
{
    (void)state;
    static const char *const models[] = {
        "nojit-tiny-qwen3-moe", "nojit-tiny-lfm2",        "nojit-tiny-lfm2-moe",
        "nojit-tiny-qwen3.5",   "nojit-tiny-qwen3.5-moe", "nojit-tiny-qwen3-next",
        "nojit-tiny-glm4-moe",
    };
    static float one[SECOND * BYTES], other[SECOND * BYTES];
    struct train_options o = small_options;
    o.batch_size = 1;
    o.seq_len = o.head_chunk = S;
    o.steps = 0;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        struct model_config c;
        int32_t ids[S];
        ok(preset_config(preset_find(models[k]), &c));
        assert_int_equal(c.vocab_size, BYTES);
        ok(init_model(path_of(models[k]), &c, 3, NJ_TYPE_F32, 1 << 30, NULL));
        struct engine *e = open_engine(models[k], NULL, &o);
        for (int apart = 0; apart < 2; apart++) {
            for (int i = 0; i < S; i++)
                ids[i] = (7 * i + i * i % 11) % 256;
            logits_of_second(e, ids, apart, one);
            for (int i = 0; i < FIRST; i++)
                ids[i] = (ids[i] + 91) % 256;
            logits_of_second(e, ids, apart, other);
            const bool same = memcmp(one, other, sizeof one) == 0;
            if (same != apart)
                fail_msg("%s: one document: %d, the same bits: %d", models[k], !apart, same);
        }
        engine_destroy(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_of_mixed_models_do_not_meet),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}

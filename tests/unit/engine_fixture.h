/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_fixture.h: small models, token files and engines on the CPU, for the tests of the engine.
 */
#ifndef NOJIT_TESTS_ENGINE_FIXTURE_H
#define NOJIT_TESTS_ENGINE_FIXTURE_H

#include "base/families.h"
#include "batch/data.h"
#include "engine/engine.h"
#include "io/error.h"
#include "model/init.h"
#include "plain_layers.h"
#include "state/engine_struct.h"

#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 61, TOKENS = 193, END_OF_TEXT = 60 };

static nj_context *ctx;
static char base[200];

/* Sizes that do not divide: vocab 61 is no multiple of 8, so logits have padded columns; hidden 72 is no multiple of
 * 64, so arenas have gaps. */
static const struct model_config qwen2 = {
    .model_type = "qwen2",
    .hidden_size = 72,
    CONFIG_PLAIN(2, 1, 64, 96, FEATURE_BIT(FEATURE_QKV_BIAS)),
    .layers = 1,
    .vocab_size = VOCAB,
    .max_positions = 128,
    .bos_id = -1,
    .eos_id = END_OF_TEXT,
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e4),
    .tied = true,
};
static const struct model_config qwen3 = {
    .model_type = "qwen3",
    .hidden_size = 64,
    CONFIG_PLAIN(2, 2, 64, 96, FEATURE_BIT(FEATURE_QK_NORM)),
    .layers = 2,
    .vocab_size = VOCAB,
    .max_positions = 128,
    .bos_id = -1,
    .eos_id = END_OF_TEXT,
    .rms_eps = 1e-6f,
    CONFIG_ROPE(1e4),
};
static const struct model_config teacher_config = {
    .model_type = "llama",
    .hidden_size = 128,
    CONFIG_PLAIN(2, 1, 64, 160, 0),
    .layers = 2,
    .vocab_size = VOCAB + 3,
    .max_positions = 128,
    .bos_id = -1,
    .eos_id = END_OF_TEXT,
    .rms_eps = 1e-5f,
    CONFIG_ROPE(1e4),
};

static const struct train_options small_options = {
    .batch_size = 2,
    .seq_len = 16,
    .grad_accum = 1,
    .steps = 40,
    .temperature = 2.0f,
    .kd_ratio = 0.5f,
    .lr = 2e-3f,
    .min_lr_ratio = 0.1f,
    .weight_decay = 0.01f,
    .beta1 = 0.9f,
    .beta2 = 0.95f,
    .eps = 1e-8f,
    .max_grad_norm = 1.0f,
    .schedule = SCHEDULE_CONSTANT,
    .dtype = NJ_F32,
    .head_chunk = 8,
    .use_graph = 1,
};

static void ok(int rc)
{
    if (rc != 0)
        fail_msg("%s (%d)", fail_text(), rc);
}

static const char *path_of(const char *name)
{
    static char path[4][512];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", base, name);
    return out;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Write a token file in LLM.Q's format, with ids made from the seed. With a mask, every fifth token has no loss. */
static void write_tokens(const char *name, uint32_t seed, bool masked, int last)
{
    int32_t head[256] = {0};
    int32_t ids[TOKENS];
    uint8_t mask[TOKENS / 8 + 1] = {0};
    for (int i = 0; i < TOKENS; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = i % 23 == 22 ? END_OF_TEXT : (int32_t)(seed >> 16) % 12 + i % 3 * 12;
        if (i % 5 != 0 && i != TOKENS - 1)
            mask[i / 8] = (uint8_t)(mask[i / 8] | 1 << i % 8);
    }
    ids[TOKENS - 1] = last;
    memcpy(head, "BIN.TOK\n", 8);
    head[2] = 2;
    head[3] = 4;
    head[4] = TOKENS;
    head[5] = VOCAB;
    head[6] = masked;
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, sizeof head, 1, f), 1);
    assert_int_equal(fwrite(ids, sizeof ids, 1, f), 1);
    if (masked)
        assert_int_equal(fwrite(mask, sizeof mask, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

static struct batch_source *open_rows(const char *name, const struct train_options *o,
                                      enum packing packing, bool once)
{
    const struct tokenizer t = {.kind = "bytes", .vocab_size = VOCAB, .end_of_text = END_OF_TEXT};
    const char *path = path_of(name);
    const struct data_options options = {
        .paths = &path,
        .path_count = 1,
        .packing = packing,
        .seq_len = o->seq_len,
        .batch_size = o->batch_size,
        .vocab_size = VOCAB,
        .once = once,
    };
    struct data *d;
    ok(data_open(&options, &t, &d));
    return data_batches(d);
}

static inline struct batch_source *open_tokens(const char *name, const struct train_options *o,
                                               bool once)
{
    return open_rows(name, o, PACKING_WRAPPED, once);
}

static inline struct engine *open_engine(const char *student, const char *teacher,
                                         const struct train_options *o)
{
    struct engine *e;
    ok(engine_create(ctx, path_of(student), teacher ? path_of(teacher) : NULL, o, NULL, NULL, &e));
    return e;
}

/* Return the size of a region; SIZE_MAX if the plan has none with that name. */
static inline size_t region_bytes(const struct plan *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->region[i].name, name) == 0)
            return p->region[i].bytes;
    return SIZE_MAX;
}

/* Return the name of the tensor that contains an element, or "padding". */
static inline const char *params_name_at(const struct params *p, int64_t element)
{
    for (size_t i = 0; i < p->specs; i++)
        if (p->first[i] >= 0 && element >= p->first[i] &&
            element - p->first[i] < tensor_elements(&p->spec[i]))
            return p->spec[i].name;
    return "padding";
}

/* Return a model with a sliding window; 0: without one. */
static inline struct model_config mistral_config(int window)
{
    struct model_config c = teacher_config;
    snprintf(c.model_type, sizeof c.model_type, "mistral");
    c.vocab_size = VOCAB;
    ATTENTION(&c).window = window;
    return c;
}

static int fixture_open(void **state)
{
    (void)state;
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    const char *tmp = getenv("TMPDIR");
    snprintf(base, sizeof base, "%.150s/nojit-engine-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(base));
    assert_int_equal(nj_context_create(&ctx, &options), 0);
    ok(init_model(path_of("qwen2"), &qwen2, 1, NJ_TYPE_F32, 1 << 30, NULL));
    ok(init_model(path_of("qwen3"), &qwen3, 2, NJ_TYPE_F32, 1 << 30, NULL));
    struct model_config gelu = qwen2, gelu_tanh = qwen3;
    const struct model_config mistral = mistral_config(17);
    GLU(&gelu).act = hidden_act_find("gelu");
    GLU(&gelu_tanh).act = hidden_act_find("gelu_pytorch_tanh");
    ok(init_model(path_of("gelu"), &gelu, 1, NJ_TYPE_F32, 1 << 30, NULL));
    ok(init_model(path_of("gelu-tanh"), &gelu_tanh, 2, NJ_TYPE_F32, 1 << 30, NULL));
    ok(init_model(path_of("teacher"), &teacher_config, 3, NJ_TYPE_F32, 1 << 30, NULL));
    ok(init_model(path_of("mistral"), &mistral, 4, NJ_TYPE_F32, 1 << 30, NULL));
    write_tokens("tokens.bin", 7, false, 1);
    write_tokens("masked.bin", 7, true, 1);
    write_tokens("masked_other.bin", 7, true, 2);
    write_tokens("other.bin", 7, false, 2);
    return 0;
}

static int fixture_close(void **state)
{
    (void)state;
    nj_context_destroy(ctx);
    return nftw(base, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif

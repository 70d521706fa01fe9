/* SPDX-License-Identifier: Apache-2.0
 *
 * model_fixture.h: Hugging Face folders of small models, and comparison of configurations.
 */
#ifndef NOJIT_TESTS_MODEL_FIXTURE_H
#define NOJIT_TESTS_MODEL_FIXTURE_H

#include "formats/safetensors.h"
#include "model/init.h"
#include "model/tensor_names.h"
#include "plain_layers.h"
#include "unit.h"

/* Write the folder of a model whose norms and biases are random, too. */
static inline void write_folder(const char *dir, const struct model_config *c)
{
    struct tensor_spec *spec;
    size_t specs;
    struct st_writer *w;
    char path[600];
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    check_ok(init_model(dir, c, 1, NJ_TYPE_F32, 1 << 30, NULL), dir);
    check_ok(tensor_specs(c, &spec, &specs), dir);
    struct st_declared *declared = calloc(specs, sizeof *declared);
    assert_non_null(declared);
    for (size_t i = 0; i < specs; i++)
        declared[i] = (struct st_declared){
            spec[i].name, NJ_TYPE_F32, spec[i].rank, {spec[i].shape[0], spec[i].shape[1]}};
    check_ok(st_write_begin(path, declared, specs, &w), dir);
    uint32_t seed = 1;
    for (size_t i = 0; i < specs; i++)
        for (int64_t k = 0; k < tensor_elements(&spec[i]); k++) {
            seed = seed * 1664525u + 1013904223u;
            const float x = (float)(int32_t)seed * 0x1p-34f;
            check_ok(st_write_data(w, &x, sizeof x), dir);
        }
    check_ok(st_write_end(w), dir);
    free(declared);
    free(spec);
}

static inline void check_config(const struct model_config *a, const struct model_config *b)
{
    assert_string_equal(a->model_type, b->model_type);
    const int sizes[][2] = {
        {a->hidden_size, b->hidden_size},
        {GLU(a).ffn_size, GLU(b).ffn_size},
        {a->layers, b->layers},
        {ATTENTION(a).heads, ATTENTION(b).heads},
        {ATTENTION(a).kv_heads, ATTENTION(b).kv_heads},
        {ATTENTION(a).head_dim, ATTENTION(b).head_dim},
        {a->vocab_size, b->vocab_size},
        {a->max_positions, b->max_positions},
        {a->bos_id, b->bos_id},
        {a->eos_id, b->eos_id},
        {a->arch.rope[0].scaling.original_positions, b->arch.rope[0].scaling.original_positions},
        {GLU(a).act, GLU(b).act},
        {a->tied, b->tied},
        {(int)ATTENTION(a).features, (int)ATTENTION(b).features}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i][0] != sizes[i][1])
            fail_msg("field %zu: %d, expected %d", i, sizes[i][0], sizes[i][1]);
    assert_true(a->rms_eps == b->rms_eps && a->arch.rope[0].theta == b->arch.rope[0].theta);
    float x[ROPES_MOST * ROPE_PAIRS_MOST], y[ROPES_MOST * ROPE_PAIRS_MOST];
    config_inv_freq(a, a->max_positions, x);
    config_inv_freq(b, a->max_positions, y);
    assert_int_equal(config_frequencies(a, ROPES_MOST), config_frequencies(b, ROPES_MOST));
    assert_memory_equal(x, y, (size_t)config_frequencies(a, ROPES_MOST) * sizeof *x);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf_model.c: a GGUF file as a model.
 */
#include "fuzz.h"
#include "io/error.h"
#include "model/model_open.h"
#include "model/tensor_names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every row can be read, in order and as it lies. */
static void check_tensor(const struct tensor *t, const struct tensor_spec *spec)
{
    FUZZ_CHECK(t && t->rank == spec->rank);
    float *values = calloc((size_t)tensor_elements(spec), sizeof *values);
    char *rows = malloc(t->bytes);
    FUZZ_CHECK(values && rows);
    tensor_rows(t, 0, t->shape[0], rows);
    tensor_to_f32(t, 0, tensor_elements(spec), values);
    free(values);
    free(rows);
}

static void check_config(const struct model_config *c)
{
    float inv_freq[ROPES_MOST * ROPE_PAIRS_MOST];
    struct model_config back;
    config_inv_freq(c, c->max_positions, inv_freq);
    for (int i = 0; i < config_frequencies(c, ROPES_MOST); i++)
        FUZZ_CHECK(isfinite(inv_freq[i]));
    FUZZ_CHECK(config_write(fuzz_folder(), c, "float32") == 0);
    FUZZ_CHECK(config_read(fuzz_folder(), &back) == 0);
    FUZZ_CHECK(memcmp(back.arch.kind, c->arch.kind, sizeof back.arch.kind) == 0 &&
               back.tied == c->tied && back.rms_eps == c->rms_eps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_file("model.gguf", data, bytes);
    struct model_config c;
    struct tensor_spec *spec;
    struct tensors w;
    size_t count;
    const int rc = source_tensors(path, &w);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    FUZZ_CHECK(source_config(path, &c) == 0);
    check_config(&c);
    FUZZ_CHECK(tensor_specs(&c, &spec, &count) == 0 && count == w.count);
    for (size_t i = 0; i < count; i++)
        check_tensor(tensors_find(&w, spec[i].name), &spec[i]);
    free(spec);
    tensors_close(&w);
    return 0;
}

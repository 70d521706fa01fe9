/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_quantized.c: a folder of quantized weights: a line with the quantization_config, then model.safetensors.
 */
#include "fuzz.h"
#include "io/error.h"
#include "model/model_open.h"
#include "tests/hash_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_config(const char *scheme, size_t bytes)
{
    static const char model[] =
        "{\"model_type\":\"llama\",\"hidden_size\":32,\"intermediate_size\":64,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"head_dim\":64,\"vocab_size\":2,"
        "\"rms_norm_eps\":1e-5,\"quantization_config\":";
    char *text = malloc(sizeof model + bytes + 1);
    FUZZ_CHECK(text);
    memcpy(text, model, sizeof model - 1);
    memcpy(text + sizeof model - 1, scheme, bytes);
    text[sizeof model - 1 + bytes] = '}';
    fuzz_file("config.json", text, sizeof model + bytes);
    free(text);
}

/* Every row can be read, as blocks and as numbers. */
static void read_rows(const struct tensor *t)
{
    const int64_t elements = t->rank == 2   ? t->shape[0] * t->shape[1]
                             : t->rank == 1 ? t->shape[0]
                                            : 0;
    float *values = malloc((size_t)elements * sizeof *values + 1);
    char *rows = malloc(t->bytes + 1);
    FUZZ_CHECK(values && rows);
    if (t->rank == 1 || t->rank == 2) {
        tensor_rows(t, 0, t->shape[0], rows);
        tensor_to_f32(t, 0, elements, values);
    }
    free(values);
    free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *end = bytes ? memchr(data, '\n', bytes) : NULL;
    const size_t line = end ? (size_t)(end - data) : bytes;
    struct model_config config;
    struct tensors w;
    write_config((const char *)data, line);
    fuzz_file("model.safetensors", end ? end + 1 : data, end ? bytes - line - 1 : 0);
    const int rc = source_tensors(fuzz_folder(), &w);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    FUZZ_CHECK(source_config(fuzz_folder(), &config) == 0);
    for (size_t i = 0; i < w.count; i++) {
        FUZZ_CHECK((int)w.tensor[i].dtype < NJ_TYPES);
        FUZZ_CHECK(tensors_find(&w, w.tensor[i].name) == &w.tensor[i]);
        read_rows(&w.tensor[i]);
    }
    FUZZ_CHECK(hash_tensors(&w) == hash_tensors(&w));
    tensors_close(&w);
    return 0;
}

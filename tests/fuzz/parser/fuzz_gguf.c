/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf.c: a GGUF file: every value of its metadata and every tensor. One that says that it is the first of two
 * parts finds a second.
 */
#include "formats/gguf.h"
#include "fuzz.h"
#include "io/error.h"
#include "tests/hash_tensors.h"

#include <stdlib.h>
#include <string.h>

#define SECOND "fuzz-00002-of-00002.gguf"

/* Tensor "second" of one F32, and split.no 1. */
static const unsigned char second[] =
    "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x8\0\0\0\0\0\0\0split.no\4\0\0\0\1\0\0\0"
    "\6\0\0\0\0\0\0\0second\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\0\0\x80?";

/* Read the value as every type that it could have; its text is complete. */
static void read_value(const struct gguf *g, const struct gguf_value *v)
{
    char key[256];
    struct gguf_text text = {0}, *texts = NULL;
    int64_t whole;
    int32_t *ints = NULL;
    double number;
    bool flag;
    size_t count = 0;
    if (v->key.bytes >= sizeof key || memchr(v->key.text, '\0', v->key.bytes))
        return;
    memcpy(key, v->key.text, v->key.bytes);
    key[v->key.bytes] = '\0';
    FUZZ_CHECK(gguf_find(g, key) == v);
    const int read = (gguf_int(g, key, 0, &whole) == 0) + (gguf_bool(g, key, false, &flag) == 0) +
                     (gguf_string(g, key, &text) == 0);
    FUZZ_CHECK(v->array ? read == 0 : read <= 1);
    FUZZ_CHECK(gguf_number(g, key, 0, &number) != 0 || !v->array);
    FUZZ_CHECK(gguf_strings(g, key, &texts, &count) == 0 || !texts);
    for (size_t i = 0; texts && i < count; i++)
        FUZZ_CHECK((const unsigned char *)texts[i].text + texts[i].bytes <= v->data + v->bytes);
    FUZZ_CHECK(gguf_ints(g, key, &ints, &count) == 0 || !ints);
    FUZZ_CHECK(!(texts && ints));
    free(texts);
    free(ints);
}

static void read_tensor(const struct tensor *t)
{
    int64_t elements = 1;
    for (int i = 0; i < t->rank; i++)
        elements *= t->shape[i];
    FUZZ_CHECK(t->bytes == tensor_type_bytes(t->dtype, elements));
    float *values = malloc((size_t)elements * sizeof *values);
    FUZZ_CHECK(values);
    tensor_to_f32(t, 0, elements, values);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gguf g;
    fuzz_file(SECOND, second, sizeof second - 1);
    const char *path = fuzz_file("fuzz-00001-of-00002.gguf", data, bytes);
    const int rc = gguf_open(path, &g);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    FUZZ_CHECK(gguf_is(path));
    for (size_t i = 0; i < g.values; i++)
        read_value(&g, &g.value[i]);
    for (size_t i = 0; i < g.tensors.count; i++) {
        FUZZ_CHECK(tensors_find(&g.tensors, g.tensors.tensor[i].name) == &g.tensors.tensor[i]);
        read_tensor(&g.tensors.tensor[i]);
    }
    FUZZ_CHECK(hash_tensors(&g.tensors) == hash_tensors(&g.tensors));
    gguf_close(&g);
    return 0;
}

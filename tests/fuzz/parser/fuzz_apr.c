/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_apr.c: an APR file as a model, with its tokenizer: as it is, and once more with checksums that are right.
 */
#include "formats/apr.h"
#include "formats/crc32.h"
#include "fuzz.h"
#include "io/error.h"
#include "model/model_open.h"
#include "model/tensor_names.h"
#include "tests/hash_tensors.h"
#include "text/tokenizer.h"

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

static void read_tokenizer(const char *path)
{
    struct tokenizer t;
    if (tokenizer_open(path, &t) == 0)
        tokenizer_close(&t);
    else
        FUZZ_CHECK(*fail_text() != '\0');
}

static int read_model(const char *path)
{
    struct model_config c;
    struct tensor_spec *spec;
    struct tensors w;
    size_t count;
    read_tokenizer(path);
    const int rc = source_tensors(path, &w);
    if (rc)
        return rc;
    FUZZ_CHECK(apr_is(path) && source_config(path, &c) == 0);
    FUZZ_CHECK(tensor_specs(&c, &spec, &count) == 0 && count == w.count);
    for (size_t i = 0; i < count; i++)
        check_tensor(tensors_find(&w, spec[i].name), &spec[i]);
    FUZZ_CHECK(hash_tensors(&w) == hash_tensors(&w));
    free(spec);
    tensors_close(&w);
    return 0;
}

static void put_checksum(uint8_t *to, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(x >> 8 * i);
}

static void read_sealed(const uint8_t *data, size_t bytes)
{
    uint8_t covered[60], *copy = malloc(bytes);
    FUZZ_CHECK(copy);
    memcpy(copy, data, bytes);
    memcpy(covered, copy, 40);
    memcpy(covered + 40, copy + 44, 20);
    put_checksum(copy + 40, crc32_of(covered, sizeof covered));
    put_checksum(copy + bytes - 4, crc32_of(copy, bytes - 4));
    read_model(fuzz_file("sealed.apr", copy, bytes));
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_file("model.apr", data, bytes);
    const int rc = apr_is(path) ? read_model(path) : -1;
    fuzz_verdict(rc == 0, apr_is(path) ? fail_text() : "not an APR file");
    if (bytes >= 68)
        read_sealed(data, bytes);
    return 0;
}

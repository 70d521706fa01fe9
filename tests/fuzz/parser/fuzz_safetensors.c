/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_safetensors.c: one file of weights.
 */
#include "formats/safetensors.h"
#include "fuzz.h"
#include "io/error.h"
#include "tests/hash_tensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tensors w;
    const int rc = st_open_file(fuzz_file("model.safetensors", data, bytes), &w);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    for (size_t i = 0; i < w.count; i++) {
        const struct tensor *t = &w.tensor[i];
        const int64_t elements = (int64_t)(t->bytes / tensor_type_bytes(t->dtype, 1));
        float *values = malloc(t->bytes * 2 + 1);
        FUZZ_CHECK(values && tensors_find(&w, t->name) == t);
        tensor_to_f32(t, 0, elements, values);
        free(values);
    }
    FUZZ_CHECK(hash_tensors(&w) == hash_tensors(&w));
    tensors_close(&w);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_safetensors.c: one file of weights.
 */
#include "fuzz.h"
#include "io/error.h"
#include "io/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct st_weights w;
    const int rc = st_open_file(fuzz_file("model.safetensors", data, bytes), &w);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    for (size_t i = 0; i < w.count; i++) {
        const struct st_tensor *t = &w.tensor[i];
        const int64_t elements = (int64_t)(t->bytes / st_dtype_bytes(t->dtype));
        float *values = malloc(t->bytes * 2 + 1);
        FUZZ_CHECK(values && st_find(&w, t->name) == t);
        st_to_f32(t, 0, elements, values);
        free(values);
    }
    FUZZ_CHECK(st_hash(&w) == st_hash(&w));
    st_close(&w);
    return 0;
}

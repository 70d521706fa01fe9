/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf_keys.c: what blobcheck reads of a GGUF file.
 */
#include "check/gguf_keys.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char why[WHY_BYTES] = "";
    json_t *fields = gguf_keys_load(fuzz_file("model.gguf", data, bytes), why);
    fuzz_verdict(fields != NULL, why);
    json_decref(fields);
    return 0;
}

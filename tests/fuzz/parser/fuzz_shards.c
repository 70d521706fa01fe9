/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_shards.c: model.safetensors.index.json, beside two shards: x and y in a.safetensors, z in
 * b.safetensors, 8 bytes each.
 */
#include "formats/safetensors.h"
#include "fuzz.h"
#include "io/error.h"
#include "tests/hash_tensors.h"

#include <string.h>

static void write_shard(const char *name, const char *header, size_t data_bytes)
{
    char file[256] = {0};
    const uint64_t header_bytes = strlen(header);
    memcpy(file, &header_bytes, 8);
    memcpy(file + 8, header, header_bytes);
    fuzz_file(name, file, 8 + header_bytes + data_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int made;
    struct tensors w;
    if (!made)
        write_shard("a.safetensors",
                    "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                    "\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
                    16);
    if (!made)
        write_shard("b.safetensors",
                    "{\"z\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8]}}", 8);
    made = 1;
    fuzz_file("model.safetensors.index.json", data, bytes);
    const int rc = st_open(fuzz_folder(), &w);
    fuzz_verdict(rc == 0, fail_text());
    if (rc)
        return 0;
    for (size_t i = 0; i < w.count; i++)
        FUZZ_CHECK(tensors_find(&w, w.tensor[i].name) == &w.tensor[i]);
    hash_tensors(&w);
    tensors_close(&w);
    return 0;
}

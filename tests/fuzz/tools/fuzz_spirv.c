/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_spirv.c: a shader, as pack-shaders and blobcheck check it. The key asked for is add.f32.
 */
#include "fuzz.h"
#include "pack/shadercheck.h"

static const struct nji_param params[] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}, {32, 12}};
static const struct key key = {.key = "add.f32",
                               .entry = "nj_add_f32",
                               .threads = 256,
                               .param_bytes = 44,
                               .param_count = 5,
                               .params = params};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct report r = {0};
    uint32_t shared_bytes;
    shader_check((struct span){data, bytes}, &key, &shared_bytes, &r);
    for (uint32_t i = 0; i < r.count; i++)
        fuzz_verdict(0, r.problems[i].text);
    fuzz_verdict(report_count(&r) == 0, "there are problems");
    report_free(&r);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gpu_code.c: the ELF file of a library, of whose GPU code the archs are wanted.
 */
#include "cli/gpu_code.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gpu_code code;
    char text[512];
    gpu_code_find(data, bytes, &code);
    fuzz_verdict(code.count > 0, "no code of a GPU is found");
    FUZZ_CHECK(code.count >= 0 && code.count <= GPU_CODE_ARCHS);
    for (int i = 0; i < code.count; i++)
        FUZZ_CHECK(gpu_code_for(&code, code.arch[i].sm) != NULL);
    FUZZ_CHECK(code.count == 0 || strlen(gpu_code_text(&code, text, sizeof text)) > 3);
    return 0;
}

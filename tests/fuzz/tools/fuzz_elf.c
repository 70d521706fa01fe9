/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_elf.c: sections and segments of an ELF file, and what a cubin says about itself.
 */
#include "fuzz.h"
#include "image/cubin.h"
#include "image/elfbin.h"

static void touch(struct span s)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < s.bytes; i++)
        sum = (uint8_t)(sum + s.data[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct span file = {data, bytes};
    char why[WHY_BYTES] = "";
    struct cubin cubin;
    struct elf e;
    if (elf_open(file, &e, why) == 0) {
        for (uint32_t i = 0; i < e.section_count; i++) {
            struct elf_section s = elf_section(&e, i), found;
            touch(s.data);
            FUZZ_CHECK(i == 0 || elf_find(&e, s.name, &found) > 0);
        }
        for (uint32_t i = 0; i < e.segment_count; i++)
            elf_segment(&e, i);
    }
    const int rc = cubin_parse(file, &cubin, why);
    fuzz_verdict(rc == 0, why);
    return 0;
}

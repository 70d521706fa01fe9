/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_fatbin.c: a container of machine code, down to the cubins' kernels, as blobcheck checks it.
 * The key asked for is add.f32 on sm_75.
 */
#include "fuzz.h"
#include "image/cubin.h"
#include "image/fatbin.h"
#include "pack/codecheck.h"

#include <stdlib.h>

static const struct nji_arch arch = {.sm = 75, .shared_limit = 65536, .lp_is_f16 = 1};
static const struct nji_param params[] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
static const struct key key = {.key = "add.f32",
                               .entry = "nj_add_f32",
                               .threads = 256,
                               .min_sm = 75,
                               .param_bytes = 32,
                               .param_count = 4,
                               .params = params};

/* Read the parts that code_check() does not reach once something is wrong. */
static void read_all(struct span container)
{
    struct fatbin f;
    struct fatbin_entry e;
    struct cubin cubin;
    char why[WHY_BYTES] = "";
    if (fatbin_open(container, &f, why) != 0) {
        fuzz_verdict(0, why);
        return;
    }
    while (fatbin_next(&f, &e, why) == 1) {
        struct span code;
        void *owned = NULL;
        if (fatbin_code(&e, &code, &owned, why) == 0)
            cubin_parse(code, &cubin, why);
        free(owned);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct code_fact fact = {0};
    struct report r = {0};
    read_all((struct span){data, bytes});
    code_check((struct span){data, bytes}, &key, &arch, 1, &fact, &r);
    for (uint32_t i = 0; i < r.count; i++)
        fuzz_verdict(0, r.problems[i].text);
    fuzz_verdict(report_count(&r) == 0, "there are problems");
    report_free(&r);
    return 0;
}

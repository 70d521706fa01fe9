/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_tokens.c: files of token ids. The first byte is the extension: 'b' .bin (llm.c, LLM.Q), '2'
 * .u16, '4' .u32.
 */
#include "batch/data.h"
#include "fuzz.h"
#include "io/error.h"

#include <stdbool.h>

enum { VOCABULARY = 1000, ROW = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char kind = bytes > 0 ? (char)data[0] : 'b';
    const char *path = fuzz_file(kind == '2'   ? "ids.u16"
                                 : kind == '4' ? "ids.u32"
                                               : "ids.bin",
                                 data + (bytes > 0), bytes - (bytes > 0));
    struct data_options o = {.paths = &path,
                             .path_count = 1,
                             .seq_len = ROW,
                             .batch_size = 2,
                             .vocab_size = VOCABULARY,
                             .once = true};
    struct data *d;
    struct batch b;
    const int rc = data_open(&o, NULL, &d);
    fuzz_verdict(rc == 0, fail_text());
    while (rc == 0 && batches_next(data_batches(d), &b) == 0)
        for (int i = 0; i < b.B * b.S; i++)
            FUZZ_CHECK(b.ids[i] >= 0 && b.ids[i] < VOCABULARY && b.target[i] < VOCABULARY);
    if (rc == 0)
        data_close(d);
    return 0;
}

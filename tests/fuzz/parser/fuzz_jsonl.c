/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_jsonl.c: lines of text, prompts and completions, and conversations, with a tokenizer that
 * has the tokens of ChatML. Run from the root of the tree.
 */
#include "batch/data.h"
#include "fuzz.h"
#include "golden_tokenizer.h"
#include "io/error.h"

#include <stdbool.h>

enum { ROW = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tokenizer t;
    if (!t.bpe)
        open_qwen2(&t);
    const char *path = fuzz_file("lines.jsonl", data, bytes);
    struct data_options o = {.paths = &path,
                             .path_count = 1,
                             .packing = PACKING_BFD,
                             .seq_len = ROW,
                             .batch_size = 2,
                             .vocab_size = t.vocab_size,
                             .once = true};
    struct data *d;
    struct batch b;
    const int rc = data_open(&o, &t, &d);
    fuzz_verdict(rc == 0, fail_text());
    while (rc == 0 && batches_next(data_batches(d), &b) == 0)
        for (int i = 0; i < b.B * b.S; i++)
            FUZZ_CHECK(b.ids[i] >= 0 && b.ids[i] < t.vocab_size);
    if (rc == 0)
        data_close(d);
    return 0;
}

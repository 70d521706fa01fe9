/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_encode.c: any bytes as text, for five tokenizers: GPT-2's, Llama 3's and Qwen2's words, a
 * pattern for Oniguruma, and Gemma's code points. Bytes become ids and the same bytes again, where no
 * composition, no U+2581 and no added token that takes spaces with it comes between. The ids of a text do
 * not depend on where it was cut. Run from the root of the tree.
 */
#include "fuzz.h"
#include "golden_tokenizer.h"
#include "io/error.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENIZERS = 5 };

static struct tokenizer tokenizers[TOKENIZERS];

static void open_all(void)
{
    open_golden("gpt2", NULL, NULL, &tokenizers[0]);
    open_golden("llama3", NULL, NULL, &tokenizers[1]);
    open_golden("qwen2", NULL, NULL, &tokenizers[2]);
    open_golden("llama3", "|\\\\s+\"", "|\\\\s*\"", &tokenizers[3]);
    open_golden("gemma", NULL, NULL, &tokenizers[4]);
}

/* Return whether the ids give back the text. */
static void check_back(const struct tokenizer *t, const uint8_t *data, size_t bytes,
                       const int32_t *ids, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n;
        const char *text = tokenizer_token(t, ids[i], &n, &(bool){0});
        FUZZ_CHECK(text && n > 0);
        while (at < bytes && data[at] != (uint8_t)text[0])
            at++; /* <left> and <right> take the spaces beside them */
        FUZZ_CHECK(n <= bytes - at && memcmp(data + at, text, n) == 0);
        at += n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!tokenizers[0].bpe)
        open_all();
    for (int k = 0; k < TOKENIZERS; k++) {
        const struct tokenizer *t = &tokenizers[k];
        const char *text = (const char *)data;
        int32_t *ids = NULL, *parts = NULL;
        size_t count = 0, capacity = 0, part_count = 0, part_capacity = 0;
        const size_t cut = tokenizer_cut(t, text, bytes, bytes / 2);
        FUZZ_CHECK(tokenizer_encode(t, text, bytes, &ids, &count, &capacity) == 0);
        FUZZ_CHECK(tokenizer_encode(t, text, cut, &parts, &part_count, &part_capacity) == 0);
        FUZZ_CHECK(
            tokenizer_encode(t, text + cut, bytes - cut, &parts, &part_count, &part_capacity) == 0);
        FUZZ_CHECK(count == part_count &&
                   (count == 0 || memcmp(ids, parts, count * sizeof *ids) == 0));
        const bool marked = k == 4 && memmem(data, bytes, "\xe2\x96\x81", 3);
        if (k != 2 && !marked) /* Qwen2's composes, and Gemma's takes the mark for a space */
            check_back(t, data, bytes, ids, count);
        free(ids);
        free(parts);
    }
    fuzz_verdict(1, "");
    return 0;
}

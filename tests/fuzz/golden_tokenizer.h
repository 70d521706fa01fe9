/* SPDX-License-Identifier: Apache-2.0
 *
 * golden_tokenizer.h: the tokenizers of tests/golden, for targets that are run from the root of the tree.
 */
#ifndef NOJIT_TESTS_GOLDEN_TOKENIZER_H
#define NOJIT_TESTS_GOLDEN_TOKENIZER_H

#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "text/tokenizer.h"

enum { GOLDEN_BYTES = 1 << 16 };

/* Opens one with the first `from` (of two of the same length) replaced. */
static inline void open_golden(const char *name, const char *from, const char *to,
                               struct tokenizer *out)
{
    static char text[GOLDEN_BYTES];
    char path[256];
    snprintf(path, sizeof path, "tests/golden/tokenizer-%s.json", name);
    FILE *f = fopen(path, "rb");
    FUZZ_CHECK(f);
    const size_t bytes = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[bytes] = '\0';
    char *place = from ? strstr(text, from) : NULL;
    FUZZ_CHECK(!from || place);
    if (from)
        memcpy(place, to, strlen(to));
    fuzz_file("tokenizer.json", text, bytes);
    FUZZ_CHECK(tokenizer_open(fuzz_folder(), out) == 0 && out->bpe);
}

/* One that has the tokens of ChatML. */
static inline void open_qwen2(struct tokenizer *out)
{
    open_golden("qwen2", NULL, NULL, out);
    FUZZ_CHECK(out->end_of_text >= 0);
}

#endif

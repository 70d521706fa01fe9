/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_tokenizer.c: a tokenizer.json; what is accepted encodes a text that has a bit of everything.
 */
#include "fuzz.h"
#include "io/error.h"
#include "text/bpe.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static const char text[] =
    "<|endoftext|>It's 12345 words,  \n\n e\xcc\x81t\xc3\xa9 <left> \xff\xfe "
    "word\t\xf0\x9f\x98\x80 12 345<right>  x";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tokenizer t;
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    fuzz_file("tokenizer.json", data, bytes);
    const int rc = tokenizer_open(fuzz_folder(), &t);
    fuzz_verdict(rc == 0 && t.bpe != NULL, rc ? fail_text() : t.refusal);
    if (rc)
        return 0;
    if (t.bpe) {
        FUZZ_CHECK(tokenizer_begin_of_text(&t) < t.vocab_size);
        /* A pattern may be refused by the matcher, which then says so. */
        if (tokenizer_encode(&t, text, sizeof text - 1, &ids, &count, &capacity) == 0)
            for (size_t i = 0; i < count; i++)
                FUZZ_CHECK(ids[i] >= 0 && ids[i] < t.vocab_size);
        tokenizer_hash(&t);
    }
    free(ids);
    tokenizer_close(&t);
    return 0;
}
